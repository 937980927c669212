package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// built is the mcpx binary, built once in a folder that TestMain removes.
var built struct {
	once sync.Once
	dir  string
	path string
	err  error
}

func TestMain(m *testing.M) {
	mcptest.Main()
	roles.Play()
	mcptest.AtOnce(6)
	dir, err := os.MkdirTemp("", "mcpx-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a folder for the binary:", err)
		os.Exit(1)
	}
	built.dir = dir
	os.Setenv(nodeCache, nodeCacheDir())
	code := 1
	if err := startProviders(); err != nil {
		fmt.Fprintln(os.Stderr, "starting the authorization servers:", err)
	} else {
		code = m.Run()
		endProviders()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// binary returns the path of mcpx, built from this checkout. It has the race detector if the tests have it and all long tests
// run.
func binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		built.path = filepath.Join(built.dir, "mcpx")
		if runtime.GOOS == "windows" {
			built.path += ".exe"
		}
		// A process with the race detector takes ten times as long to start, so only the long run has it here.
		args := []string{"build", "-buildvcs=false", fmt.Sprintf("-race=%t", mcptest.Race && mcptest.Full), "-o", built.path}
		if out, err := exec.Command("go", append(args, "mcpx/cmd/mcpx")...).CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatalf("building mcpx: %v", built.err)
	}
	return built.path
}

// nodeCache is the variable that names the folder in which Node keeps compiled code; it saves a third of the start of a server.
const nodeCache = "NODE_COMPILE_CACHE"

func nodeCacheDir() string { return filepath.Join(built.dir, "node") }

// home is a user's folder, empty at first, and the environment variables that refer to it.
type home struct {
	dir    string
	extra  []string
	daemon bool // sessions over stdio use the daemon
}

// endDaemons ends the daemons of a home; nil where there is no daemon.
var endDaemons func(testing.TB, *home)

// everyDaemon makes all sessions over stdio use the daemon: MCPX_TEST_DAEMON=1 go test -run Stdio.
var everyDaemon = os.Getenv("MCPX_TEST_DAEMON") != ""

func newHome(t testing.TB) *home {
	t.Helper()
	name, value := mcptest.Mark()
	h := &home{dir: t.TempDir(), extra: []string{name + "=" + value}}
	if everyDaemon && endDaemons != nil {
		t.Cleanup(func() { endDaemons(t, h) })
	}
	return h
}

// env returns the few environment variables that a desktop client passes to mcpx.
func (h *home) env() []string {
	env := []string{
		"HOME=" + h.dir, "USERPROFILE=" + h.dir,
		"XDG_CONFIG_HOME=" + filepath.Join(h.dir, "config"),
		"XDG_CACHE_HOME=" + filepath.Join(h.dir, "cache"),
		"APPDATA=" + filepath.Join(h.dir, "config"), "LOCALAPPDATA=" + filepath.Join(h.dir, "cache"),
		"XDG_RUNTIME_DIR=" + h.dir, "PATH=" + os.Getenv("PATH"), "SYSTEMROOT=" + os.Getenv("SYSTEMROOT"), "TMPDIR=" + h.dir, "TEMP=" + h.dir,
		// Without this, a binary with the race detector waits for a second before it exits.
		"GORACE=atexit_sleep_ms=0",
		nodeCache + "=" + nodeCacheDir(),
		"MCPX_KEYRING=off", // the tests must not change the user's own keyring
	}
	if h.daemon || everyDaemon {
		// A busy machine needs longer to start the daemon.
		env = append(env, "MCPX_DAEMON_WITHIN=1m")
	} else {
		env = append(env, "MCPX_DAEMON=0")
	}
	return append(env, h.extra...)
}

// write writes a file in the home folder and returns its path.
func (h *home) write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// server is an entry of mcpServers in the config.
type server map[string]any

// fake returns the config entry of a fake upstream server over stdio.
func fake(t testing.TB, spec mcptest.Spec) server {
	t.Helper()
	command, args, env := spec.Stdio(t)
	return server{"command": command, "args": args, "env": env}
}

// config writes a config with these servers and global keys, and returns its path. The tests' client, named
// e2e, gets structured content with every result, as a program would, unless the global keys have rules for
// clients.
func (h *home) config(t testing.TB, servers map[string]server, global map[string]any) string {
	t.Helper()
	// On a slow machine servers need longer, so mcpx waits longer for them.
	all := map[string]any{"mcpServers": servers, "startup_wait": 60, "exec_wait": 60, "clients": map[string]any{"e2e": map[string]any{"structured_content": "always"}}}
	if everyDaemon {
		all["daemon_idle"] = 1
	}
	for key, value := range global {
		all[key] = value
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return h.write(t, "mcpx.json", string(data))
}

// command returns a command that runs mcpx in this home, in its own process.
func (h *home) command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(binary(t), args...)
	cmd.Env = h.env()
	cmd.Dir = h.dir
	return cmd
}

// run runs mcpx until it exits. If mcpx does not exit in time, it prints the stacks of its goroutines.
func (h *home) run(t testing.TB, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := h.command(t, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	cmd.WaitDelay = patience // a process that it has left behind may hold its outputs open
	failure := cmd.Start()
	if failure == nil {
		hung := time.AfterFunc(2*patience, func() { quit(cmd) })
		failure = cmd.Wait()
		hung.Stop()
	}
	var exit *exec.ExitError
	if failure != nil && !errors.As(failure, &exit) {
		t.Fatalf("running mcpx %q: %v\n%s", args, failure, err.String())
	}
	return out.String(), err.String(), cmd.ProcessState.ExitCode()
}

// start starts a program with pipes for its stdin and its stdout.
func start(t testing.TB, cmd *exec.Cmd) (in io.WriteCloser, out io.ReadCloser) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", cmd.Path, err)
	}
	return in, out
}

// visit runs a program until it exits, and calls open for each line of its stdout that is the address of a
// page. The output includes stderr, unless cmd.Stderr is set.
func visit(t testing.TB, cmd *exec.Cmd, open func(page string)) (output string, err error) {
	t.Helper()
	var all lockedBuffer
	if cmd.Stderr == nil {
		cmd.Stderr = &all
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&all, lines.Text())
		if strings.HasPrefix(lines.Text(), "http") {
			open(lines.Text())
		}
	}
	err = cmd.Wait()
	return all.String(), err
}

// freePort returns a port for a program that must be told one. Systems choose ports above 32767 for connections, and for programs
// that listen on port 0, as all others do here: so no other process takes the port before the program listens.
func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 20_000 + rand.IntN(12_000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// lockedBuffer collects the output of a process, and can be read meanwhile.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestEmptyVariables: mcpx ignores an empty environment variable of a flag.
func TestEmptyVariables(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	cmd := h.command(t, "exec", "--config", config, "fake", "echo", `{"text":"here"}`)
	cmd.Env = append(cmd.Env, "MCPX_CONFIG=", "MCPX_LOG_LEVEL=", "MCPX_WATCH=", "MCPX_DEMO=", "MCPX_SELECT=")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "here") {
		t.Errorf("got %v: %s", err, out)
	}
}

// TestOutputLost: a command whose output cannot be written fails.
func TestOutputLost(t *testing.T) {
	mcptest.Parallel(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full here")
	}
	defer full.Close()
	cmd := newHome(t).command(t, "version")
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = full, &stderr
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(stderr.String(), "writing the output") {
		t.Errorf("got %v: %s", err, stderr.String())
	}
}
