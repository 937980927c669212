package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mcpx/internal/mcptest"
)

// pseudoTerminal returns the two ends of a terminal: screen is the one that a program has, and what is written to typist is
// typed there.
func pseudoTerminal(t testing.TB) (typist, screen *os.File) {
	t.Helper()
	typist, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { typist.Close() })
	fd := int(typist.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		screen, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { screen.Close() })
	return typist, screen
}

// TestDaemon_ClosedPipe: a command whose output nobody reads, as before "| head", ends without a word.
func TestDaemon_ClosedPipe(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	for _, args := range [][]string{{"exec", "fake", "echo", "text=hi"}, {"status"}} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		read.Close()
		cmd := h.command(t, append(args, "--config", config)...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = write, &stderr
		_ = cmd.Run()
		write.Close()
		if code := cmd.ProcessState.ExitCode(); code != exitPipe || stderr.Len() > 0 {
			t.Errorf("%s: exit %d, %s", args, code, stderr.String())
		}
	}
}

// TestDaemon_ExecHangUp: a hangup, as at the end of a terminal, ends a call.
func TestDaemon_ExecHangUp(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	spec := mcptest.Spec{}.WithFiles(t)
	config := h.config(t, map[string]server{"fake": fake(t, spec)}, nil)
	cmd := h.command(t, "--config", config, "exec", "fake", "slow", "ms=3600000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	mcptest.WaitFor(t, "the call", patience, func() bool { return len(spec.Log(t).Calls("slow")) == 1 })
	_ = cmd.Process.Signal(syscall.SIGHUP)
	mcptest.WaitFor(t, "the cancellation", patience, func() bool { return len(spec.Log(t).Event(mcptest.EventCancel)) == 1 })
	_ = cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGHUP {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
}

// TestDaemon_Typed: if a command gets no daemon and works by itself, it still reads what the user had typed at the terminal
// before.
func TestDaemon_Typed(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	h.run(t, "", "--config", config, "exec", "fake", "pid")
	defer h.stopDaemon(t)()
	typist, screen := pseudoTerminal(t)
	if _, err := typist.WriteString("{\"text\":\n\"typed\"}\n\x04"); err != nil {
		t.Fatal(err)
	}
	cmd := h.command(t, "--config", config, "exec", "fake", "echo", "-")
	cmd.Stdin = screen
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "typed" {
		t.Errorf("%v: %s", err, out)
	}
}

// TestHandable_Lost: a command at a terminal ends after it has lost its daemon, also if the daemon was only stopped and still has
// its end of the pipe. The output that the daemon had written before is still shown.
func TestHandable_Lost(t *testing.T) {
	typist, screen := pseudoTerminal(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	files, done, err := handedFiles(streams{in: null, out: screen, err: screen})
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(files[1].Fd()))
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	daemons := os.NewFile(uintptr(fd), "the daemon's")
	defer daemons.Close()
	if _, err := daemons.WriteString("written\n"); err != nil {
		t.Fatal(err)
	}
	done(true)
	line := make([]byte, len("written"))
	if _, err := io.ReadFull(typist, line); err != nil || string(line) != "written" {
		t.Errorf("%v: %q", err, line)
	}
}

// TestDaemon_Rights: a session with fewer rights than the daemon, or with other limits, as in some sandboxes, serves by itself.
func TestDaemon_Rights(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{}, nil)
	h.run(t, "", "--config", config)
	for _, wrapper := range [][]string{{"setpriv", "--no-new-privs"}, {"sh", "-c", `ulimit -f 100000 && exec "$@"`, "sh"}} {
		if out, err := exec.Command(wrapper[0], append(wrapper[1:], "true")...).CombinedOutput(); err != nil {
			t.Logf("not here: %v: %v %s", wrapper, err, out)
			continue
		}
		cmd := exec.Command(wrapper[0], append(wrapper[1:], binary(t), "--config", config)...)
		cmd.Env, cmd.Stdin = h.env(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), `"id":1,"result"`) || !strings.Contains(string(out), "other rights or limits") {
			t.Errorf("%v: %v: %s", wrapper, err, out)
		}
	}
}

// TestDaemon_Descriptors: a daemon that has no descriptors left for a session refuses it. The refused session serves by itself,
// and the sessions that are open in the daemon go on.
func TestDaemon_Descriptors(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	h.run(t, "", "--config", config)
	for _, pid := range h.daemons(t) {
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 96, Max: 96}, nil); err != nil {
			t.Fatal(err)
		}
	}
	var all []*client
	for refused := false; !refused; {
		cmd := h.command(t, "--config", config)
		p := startStdio(t, cmd)
		one := &client{peer: p, era: legacy, name: "e2e"}
		one.open(t)
		refused = strings.Contains(p.stderr.String(), "no room for a session: too many open files")
		all = append(all, one)
		for i, one := range all {
			if r := one.exec(t, "fake", "echo", `{"text":"up"}`); r.text(t) != "up" {
				t.Errorf("session %d of %d: %s", i+1, len(all), r.Content)
			}
		}
		if len(all) > 30 {
			t.Fatal("no session was refused")
		}
	}
	if len(all) < 3 {
		t.Errorf("the daemon had room for %d sessions", len(all)-1)
	}
}

// TestDaemon_FewFiles: a command that may have only few files open starts no daemon, which others would use.
func TestDaemon_FewFiles(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	cmd := exec.Command("/bin/sh", "-c", `ulimit -n 512 && exec "$0" --config "$1"`, binary(t), h.config(t, map[string]server{}, nil))
	cmd.Env, cmd.Stdin = h.env(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"id":1,"result"`) || !strings.Contains(string(out), "the limit of open files (ulimit -Hn) is 512 here") {
		t.Errorf("%v: %s", err, out)
	}
	if pids := h.daemons(t); len(pids) != 0 {
		t.Errorf("daemons: %v", pids)
	}
}

// TestDaemon_ConfigDeleted: the daemon of a config file that is gone can be looked at and stopped.
func TestDaemon_ConfigDeleted(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{}, nil)
	h.run(t, "", "--config", config)
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	if out, stderr, code := h.run(t, "", "--config", config, "status"); code != 0 || !strings.Contains(out, "0 sessions, 0 processes of servers") {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
	if _, stderr, code := h.run(t, "", "--config", config, "stop"); code != 0 || len(h.daemons(t)) != 0 {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if _, stderr, code := h.run(t, "", "--config", config, "status"); code != exitConfig || !strings.Contains(stderr, "not found") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// TestDaemon_Inherited: what else was open in the command that starts the daemon, such as a script's lock, does not stay open.
func TestDaemon_Inherited(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := h.command(t, "--config", h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil), "exec", "fake", "pid")
	cmd.ExtraFiles = []*os.File{write, write, write}
	err = cmd.Run()
	write.Close()
	if pids := h.daemons(t); err != nil || len(pids) != 1 {
		t.Fatalf("%v, daemons: %v", err, pids)
	}
	_ = read.SetReadDeadline(time.Now().Add(patience))
	if n, err := read.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("the pipe is still open: %v", err)
	}
}

// TestDaemon_Same: a session in the daemon gets the same bytes as one without it, for random results of any size, for noise and
// for errors. Other tests check what these bytes must be.
func TestDaemon_Same(t *testing.T) {
	mcptest.Parallel(t)
	servers := map[string]server{"fake": fake(t, mcptest.Spec{}), "modern": fake(t, mcptest.Spec{Era: mcptest.EraModern})}
	var answers [2]map[string]string
	for way, h := range []*home{newDaemonHome(t), newHome(t)} {
		p := h.serveStdio(t, "--config", h.config(t, servers, nil))
		c := &client{peer: p, era: legacy, name: "some-agent"}
		c.open(t)
		for name := range servers {
			c.exec(t, name, "echo", `{"text":"up"}`)
		}
		answers[way] = make(map[string]string)
		random := rand.New(rand.NewPCG(1, 2))
		ids := []string{c.start(t, "tools/list", `{}`, ""), c.start(t, "no/such", `{}`, ""), c.start(t, "tools/call", `{"name":"inspect","arguments":{}}`, "")}
		p.send(t, "noise\n\n{\"jsonrpc\":")
		for i := range 100 {
			raw, _ := json.Marshal(randomResult(random, i))
			of := []string{"fake", "modern"}[i%2]
			ids = append(ids, c.start(t, "tools/call", `{"name":"exec","arguments":`+execArgs(of, "raw", `{"result":`+string(raw)+`}`)+`}`, ""))
		}
		for _, id := range ids {
			m := c.answer(t, id)
			answers[way][id] = handles.ReplaceAllString(fmt.Sprintf("%s %v", m.Result, m.Error), "HANDLE")
		}
	}
	for id, answer := range answers[0] {
		if answer != answers[1][id] {
			t.Errorf("%s: in the daemon %.500s\nwithout it %.500s", id, answer, answers[1][id])
		}
	}
}

// handles are the random names of results that were cut.
var handles = regexp.MustCompile(`handle[\\": ]+[A-Za-z0-9_-]+`)

// randomResult returns a result of a tool. A few are about a megabyte.
func randomResult(r *rand.Rand, i int) string {
	text := func(most int) string {
		var out strings.Builder
		for range 1 + r.IntN(most) {
			out.WriteString([]string{"alpha ", "é中😀", "\n", "\x00", "\u2028", `"`, `\`, "<b>", "9007199254740993", "\r\n", "{", "true"}[r.IntN(12)])
		}
		return out.String()
	}
	most := 40
	if i%50 == 0 {
		most = 300_000
	}
	rows := make([]map[string]any, 1+r.IntN(20))
	for n := range rows {
		rows[n] = map[string]any{"id": n, "name": text(5), "open": r.IntN(2) == 0}
	}
	table, _ := json.Marshal(rows)
	result, _ := json.Marshal(map[string]any{
		"content":           []any{map[string]any{"type": "text", "text": text(most)}, map[string]any{"type": "text", "text": string(table)}},
		"structuredContent": map[string]any{"rows": rows}, "isError": r.IntN(5) == 0,
	})
	return string(result)
}

// TestDaemon_LogFile: all sessions of a daemon write to the log file, also one that somebody has moved away, and no session leaves a
// goroutine behind.
func TestDaemon_LogFile(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{}, map[string]any{"log_file": "mcpx.log"})
	file := filepath.Join(filepath.Dir(config), "mcpx.log")
	const sessions = 5
	for i := range sessions {
		if i == sessions-1 {
			if err := os.Rename(file, file+".moved"); err != nil {
				t.Fatal(err)
			}
		}
		if _, stderr, code := h.run(t, "", "--config", config); code != 0 || strings.Contains(stderr, "without the daemon") {
			t.Fatalf("exit %d, %s", code, stderr)
		}
	}
	for name, want := range map[string]int{file: 1, file + ".moved": sessions - 1} {
		if logged, err := os.ReadFile(name); err != nil || strings.Count(string(logged), "no servers are defined") != want {
			t.Errorf("%v: %s: %s", err, name, logged)
		}
	}
	pids := h.daemons(t)
	if len(pids) != 1 {
		t.Fatalf("daemons: %v", pids)
	}
	if err := syscall.Kill(pids[0], syscall.SIGQUIT); err != nil { // it ends with the stacks of its goroutines
		t.Fatal(err)
	}
	mcptest.WaitFor(t, "the end of the daemon", patience, func() bool { return !mcptest.Alive(pids[0]) })
	stacks := ""
	for _, pair := range h.extra {
		if dir, is := strings.CutPrefix(pair, "XDG_RUNTIME_DIR="); is {
			said, _ := filepath.Glob(filepath.Join(dir, "mcpx", "*.log"))
			for _, name := range said {
				text, _ := os.ReadFile(name)
				stacks += string(text)
			}
		}
	}
	if n := strings.Count(stacks, "created by gopkg.in/natefinch/lumberjack"); n != 1 {
		t.Errorf("%d goroutines of log files, in %s", n, stacks)
	}
}
