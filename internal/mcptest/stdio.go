package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// These environment variables turn a test binary into a fake.
const (
	// envSpec is the path of the file with the Spec.
	envSpec = "MCPX_MCPTEST_SPEC"
	// envRole is "grandchild" in the process that Spec.ForkGrandchild starts.
	envRole = "MCPX_MCPTEST_ROLE"
	// envOwner is the process ID of the test. Every descendant inherits it, so that NoLeaks finds descendants whose
	// parent has ended.
	envOwner = "MCPX_MCPTEST_OWNER"
)

// Main turns the process into a fake server if it was started as one (see Spec.Stdio), and exits when the fake ends.
// Otherwise it returns at once. Call it at the beginning of TestMain, so that the test binary can be its own
// upstream.
//
//	func TestMain(m *testing.M) {
//		mcptest.Main()
//		os.Exit(m.Run())
//	}
func Main() {
	path := os.Getenv(envSpec)
	if path == "" {
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcptest: reading the spec:", err)
		os.Exit(3)
	}
	var s Spec
	if err := json.Unmarshal(data, &s); err != nil {
		fmt.Fprintln(os.Stderr, "mcptest: reading the spec:", err)
		os.Exit(3)
	}
	p := &process{spec: s}
	if os.Getenv(envRole) == "grandchild" {
		p.linger()
	}
	os.Exit(p.run())
}

// Stdio returns the command that starts this fake as a child process. The command is the program fake if MCPX_FAKE is its path,
// and otherwise the test binary itself, which must call Main. The child needs the environment variables in env, and no others.
func (s Spec) Stdio(t testing.TB) (command string, args []string, env map[string]string) {
	t.Helper()
	if s.FailStarts > 0 && s.LogFile == "" {
		t.Fatal("Spec.FailStarts needs a LogFile")
	}
	exe := os.Getenv("MCPX_FAKE")
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			t.Fatalf("finding the test binary: %v", err)
		}
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatalf("encoding the spec: %v", err)
	}
	// The spec is in a file, because 5,000 tools do not fit into an environment variable.
	path := filepath.Join(t.TempDir(), "spec.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatalf("writing the spec: %v", err)
	}
	env = map[string]string{
		envSpec:  path,
		envOwner: strconv.Itoa(os.Getpid()),
		// Otherwise a binary with the race detector sleeps for a second when it exits.
		"GORACE": "atexit_sleep_ms=0",
	}
	if testing.CoverMode() != "" {
		env["GOCOVERDIR"] = t.TempDir() // otherwise the binary writes a warning to stderr
	}
	// This argument is not a test flag; it makes the process recognizable in process lists.
	return exe, []string{"-test.run=^$", "mcptest-fake-" + s.name()}, env
}

// Mark returns an environment variable by which NoLeaks recognizes the descendants of this test, even after their
// parent has ended. Fakes have it; a test that starts other programs can set it for them.
func Mark() (name, value string) { return envOwner, strconv.Itoa(os.Getpid()) }

// Command returns the command of Stdio as an exec.Cmd without pipes, for tests that start the fake themselves. Its
// environment has only the variables that the fake needs.
func (s Spec) Command(t testing.TB) *exec.Cmd {
	t.Helper()
	command, args, env := s.Stdio(t)
	cmd := exec.Command(command, args...)
	cmd.Env = []string{}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

// process is a fake that runs in its own process.
type process struct {
	spec Spec
	srv  *server
}

// run serves until the fake has a reason to end, and returns the exit status.
func (p *process) run() int {
	srv, err := newServer(p.spec, false)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcptest:", err)
		return 3
	}
	p.srv = srv
	var once sync.Mutex // locked by the first exit, and never unlocked
	srv.exit = func(code int) {
		once.Lock()
		os.Exit(code)
	}
	starts := p.starts()
	srv.rec.add(Entry{Event: EventStart})
	p.handleSignals()
	p.boundLife()
	if err := p.fork(); err != nil {
		fmt.Fprintln(os.Stderr, "mcptest:", err)
		return 3
	}
	for _, line := range p.spec.StderrLines {
		fmt.Fprintln(os.Stderr, line)
	}
	p.flood()
	if p.spec.ExitAtOnce || starts < p.spec.FailStarts {
		srv.leave(p.spec.ExitCode)
	}
	p.spec.install(context.Background(), os.Stdout)
	st := newStream(srv, os.Stdin, os.Stdout)
	if eof := st.run(); !eof {
		select {}
	}
	srv.rec.add(Entry{Event: EventEOF})
	if p.spec.IgnoreEOF {
		select {}
	}
	srv.leave(0)
	return 0
}

// starts returns how often this fake was started before, according to its log.
func (p *process) starts() int {
	if p.spec.FailStarts == 0 {
		return 0
	}
	log, err := readLog(p.spec.LogFile)
	if err != nil {
		return 0
	}
	return len(log.Event(EventStart))
}

// handleSignals records SIGTERM and SIGINT, and ends the process unless IgnoreTERM is set.
func (p *process) handleSignals() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() { // ends with the process
		for range signals {
			p.srv.rec.add(Entry{Event: EventTERM})
			if !p.spec.IgnoreTERM {
				p.srv.leave(128 + int(syscall.SIGTERM))
			}
		}
	}()
}

// boundLife ends the process after MaxLife or, except on Windows, when the test process has ended. So an interrupted test run
// leaves nothing behind.
func (p *process) boundLife() {
	owner, _ := strconv.Atoi(os.Getenv(envOwner))
	life := p.spec.MaxLife
	if life == 0 {
		life = 10 * time.Minute
	}
	go func() { // ends with the process
		end := time.NewTimer(life)
		watch := time.NewTicker(time.Second)
		for {
			select {
			case <-end.C:
				os.Exit(4)
			case <-watch.C:
				if owner > 0 && runtime.GOOS != "windows" && !Alive(owner) {
					os.Exit(4)
				}
			}
		}
	}()
}

// fork starts the grandchild, and writes the process IDs to PidFile.
func (p *process) fork() error {
	if p.spec.ForkGrandchild {
		exe, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding the test binary: %w", err)
		}
		cmd := exec.Command(exe, "-test.run=^$", "mcptest-grandchild-"+p.spec.name())
		cmd.Env = append(os.Environ(), envRole+"=grandchild")
		if p.spec.GrandchildHoldsPipes {
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("starting a grandchild: %w", err)
		}
		go cmd.Wait() // ends when the grandchild or this process ends
		if err := writePid(p.spec.PidFile, cmd.Process.Pid, "grandchild"); err != nil {
			return err
		}
	}
	return writePid(p.spec.PidFile, os.Getpid(), "server")
}

// flood writes StderrFlood bytes to stderr. A finite flood is written before anything is read. So if it does not fit into the
// buffer of the pipe, a client that does not read stderr gets no answer.
func (p *process) flood() {
	line := strings.Repeat("stderr flood ", 78) + "\n"
	if p.spec.StderrFlood < 0 {
		go func() { // ends with the process, or when stderr is closed
			for {
				if _, err := io.WriteString(os.Stderr, line); err != nil {
					return
				}
			}
		}()
		return
	}
	for left := p.spec.StderrFlood; left > 0; left -= int64(len(line)) {
		io.WriteString(os.Stderr, line[:min(int64(len(line)), left)])
	}
}

// linger is what a grandchild runs: it does nothing until it is killed, or until boundLife ends it.
func (p *process) linger() {
	if p.spec.IgnoreTERM {
		signal.Ignore(syscall.SIGTERM, os.Interrupt)
	}
	p.boundLife()
	select {}
}
