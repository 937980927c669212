package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"mcpx/internal/mcptest"
)

// newDaemonHome returns a home in which sessions over stdio use the daemon, which ends with the test; its log is printed if the test
// fails.
func newDaemonHome(t testing.TB) *home {
	t.Helper()
	h := newHome(t)
	h.daemon = true
	dir, err := os.MkdirTemp("/tmp", "mcpx-daemon-") // not t.TempDir, because the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	h.extra = append(h.extra, "XDG_RUNTIME_DIR="+dir)
	t.Cleanup(func() {
		endDaemons(t, h)
		if said, _ := filepath.Glob(filepath.Join(dir, "mcpx", "*.log")); t.Failed() && len(said) > 0 {
			text, _ := os.ReadFile(said[0])
			t.Logf("the daemon said: %s", text)
		}
		os.RemoveAll(dir)
	})
	return h
}

func init() {
	endDaemons = func(t testing.TB, h *home) {
		for _, pid := range h.daemons(t) {
			_ = syscall.Kill(pid, syscall.SIGTERM)
			mcptest.WaitFor(t, "the end of the daemon", patience, func() bool { return !mcptest.Alive(pid) })
		}
	}
}

// daemons returns the process ids of the daemons of this home.
func (h *home) daemons(t testing.TB) (pids []int) {
	t.Helper()
	var mark string
	for _, pair := range h.env() {
		if strings.HasPrefix(pair, "XDG_RUNTIME_DIR=") {
			mark = pair // the last one is in force
		}
	}
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		argv, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		environ, _ := os.ReadFile(name)
		if strings.HasPrefix(string(argv), "mcpx-daemon\x00") && strings.Contains("\x00"+string(environ), "\x00"+mark+"\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestDaemon_FiftyStarts: however many sessions start at the same moment, there is one daemon, and each session has its
// servers and gets its answers.
func TestDaemon_FiftyStarts(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	starts := 50
	if !mcptest.Full {
		starts = 12
	}
	var all sync.WaitGroup
	for i := range starts {
		all.Go(func() { // ends with the session
			id := strconv.Itoa(i + 100)
			out, stderr, code := h.run(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`+"\n", "--config", config)
			if code != 0 || !strings.Contains(out, `"id":`+id+`,"result"`) || strings.Contains(stderr, "without the daemon") {
				t.Errorf("session %d: exit %d, %q, %s", i, code, out, stderr)
			}
		})
	}
	all.Wait()
	if pids := h.daemons(t); len(pids) != 1 {
		t.Errorf("daemons: %v", pids)
	}
}

// TestDaemon_Killed: when the daemon is killed, its servers end, and the commands of its sessions end with a clear line. The
// next session finds the stale socket and starts another daemon.
func TestDaemon_Killed(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	spec := mcptest.Spec{ForkGrandchild: true}.WithFiles(t)
	config := h.config(t, map[string]server{"fake": fake(t, spec)}, nil)
	p := h.serveStdio(t, "--config", config)
	c := &client{peer: p, era: legacy, name: "e2e"}
	c.open(t)
	c.exec(t, "fake", "echo", `{"text":"up"}`)
	first := h.daemons(t)
	if len(first) != 1 {
		t.Fatalf("daemons: %v", first)
	}
	if err := syscall.Kill(first[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
	if code := p.cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(p.stderr.String(), "the daemon was killed or has crashed; this session has ended with it") {
		t.Errorf("exit %d, %s", code, p.stderr.String())
	}
	checkGone(t, spec)
	next := &client{peer: h.serveStdio(t, "--config", config), era: legacy, name: "e2e"}
	next.open(t)
	if r := next.exec(t, "fake", "echo", `{"text":"again"}`); r.text(t) != "again" {
		t.Errorf("got %s", r.Content)
	}
	if pids := h.daemons(t); len(pids) != 1 || pids[0] == first[0] {
		t.Errorf("daemons: %v after %v", pids, first)
	}
}

// stopDaemon stops the only daemon, so that it answers no command until goOn is called. Commands do not wait long for it.
func (h *home) stopDaemon(t *testing.T) (goOn func()) {
	t.Helper()
	pids := h.daemons(t)
	if len(pids) != 1 {
		t.Fatalf("daemons: %v", pids)
	}
	_ = syscall.Kill(pids[0], syscall.SIGSTOP)
	h.extra = append(h.extra, "MCPX_DAEMON_WITHIN=300ms")
	return func() { _ = syscall.Kill(pids[0], syscall.SIGCONT) }
}

// TestDaemon_Stopped: while the daemon is stopped with SIGSTOP, a new session serves by itself after a moment. The command of a
// session that is open in the daemon ends with a clear line.
func TestDaemon_Stopped(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	p := h.serveStdio(t, "--config", config)
	c := &client{peer: p, era: legacy, name: "e2e"}
	c.open(t)
	goOn := h.stopDaemon(t)
	defer goOn()
	out, stderr, code := h.run(t, `{"jsonrpc":"2.0","id":7,"method":"ping"}`+"\n", "--config", config)
	if code != 0 || !strings.Contains(out, `"id":7,"result"`) || !strings.Contains(stderr, "serving without the daemon") {
		t.Errorf("exit %d, %q, %s", code, out, stderr)
	}
	if mcptest.Full { // takes 11 s
		mcptest.WaitFor(t, "the end of the command", patience, func() bool {
			return strings.Contains(p.stderr.String(), "the daemon has given no sign for 10s; this session has ended with it")
		})
		goOn() // a stopped process keeps its ends of the pipes open
		p.wait(t)
	}
}

// TestDaemon_Session: a session in the daemon has the variables, the folder and the umask of its own command, and its servers
// end with it, also when the command is killed. The daemon has neither these variables nor this folder.
func TestDaemon_Session(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	script := `printf '%s\n' "$SECRET $PWD $(umask)" > ` + filepath.Join(h.dir, "$OUT") + `; exec cat`
	config := h.config(t, map[string]server{"shell": {
		"command": "/bin/sh", "args": []string{"-c", script}, "env": map[string]string{"SECRET": "${SECRET}", "OUT": "${OUT}"},
	}}, nil)
	for i, how := range []string{"input ends", "killed"} {
		folder := filepath.Join(h.dir, fmt.Sprintf("folder%d", i))
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/sh", "-c", fmt.Sprintf(`umask 01%d; exec "$0" --config "$1"`, i), binary(t), config)
		cmd.Dir, cmd.Env = folder, append(h.env(), fmt.Sprintf("SECRET=secret%d", i), "OUT=out"+strconv.Itoa(i))
		p := startStdio(t, cmd)
		c := &client{peer: p, era: legacy, name: "e2e"}
		c.open(t)
		var got []byte
		mcptest.WaitFor(t, "the server", patience, func() bool {
			got, _ = os.ReadFile(filepath.Join(h.dir, "out"+strconv.Itoa(i)))
			return len(got) > 0
		})
		if want := fmt.Sprintf("secret%d %s 001%d\n", i, folder, i); string(got) != want {
			t.Errorf("%s: got %q, want %q", how, got, want)
		}
		if how == "killed" {
			_ = p.cmd.Process.Kill()
		} else {
			p.stdin.Close()
		}
		p.wait(t)
		pids := h.daemons(t)
		if len(pids) != 1 {
			t.Fatalf("daemons: %v", pids)
		}
		mcptest.WaitFor(t, "the end of the server", patience, func() bool { return !hasChild(t, pids[0], "cat") })
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pids[0]))
		if err != nil || strings.Contains(string(environ), "secret") {
			t.Errorf("the daemon has the variables of a session: %v", err)
		}
		if dir, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pids[0])); dir != h.dir {
			t.Errorf("the daemon works in %s", dir)
		}
	}
}

// hasChild reports whether a process has a child with this name.
func hasChild(t testing.TB, pid int, name string) bool {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		data, _ := os.ReadFile(file)
		if _, rest, ok := strings.Cut(string(data), "("+name+") "); ok && len(strings.Fields(rest)) > 1 && strings.Fields(rest)[1] == strconv.Itoa(pid) {
			return true
		}
	}
	return false
}

// TestDaemon_Reload: a changed config file reaches the sessions that are open. mcpx reload has one line for all of them.
func TestDaemon_Reload(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{"one": fake(t, mcptest.Spec{})}, nil)
	c := &client{peer: h.serveStdio(t, "--config", config), era: legacy, name: "e2e"}
	c.open(t)
	c.awaitTried(t, "one")
	h.config(t, map[string]server{"one": fake(t, mcptest.Spec{}), "two": fake(t, mcptest.Spec{})}, nil)
	c.awaitTried(t, "one", "two")
	(&client{peer: h.serveStdio(t, "--config", config), era: legacy, name: "e2e"}).open(t)
	out, stderr, code := h.reload(t, config)
	if code != 0 || !strings.HasSuffix(out, " (stdio, 2 sessions)  nothing has changed\n") || strings.Count(out, "\n") != 1 {
		t.Errorf("exit %d, %q, %q", code, out, stderr)
	}
}

// TestDaemon_None: for these sessions mcpx uses no daemon, and starts none.
func TestDaemon_None(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	for name, test := range map[string]struct {
		args, env []string
		global    map[string]any
	}{
		"flag":     {args: []string{"--no-daemon"}},
		"variable": {env: []string{"MCPX_DAEMON=0"}},
		"config":   {global: map[string]any{"daemon": false}},
		"trace":    {args: []string{"--trace", filepath.Join(h.dir, "trace")}},
		"demo":     {args: []string{"--demo"}},
		"pprof":    {args: []string{"--pprof", "127.0.0.1:0"}},
	} {
		h := &home{dir: h.dir, extra: append(append([]string{}, h.extra...), test.env...), daemon: true}
		args := append([]string{"serve", "--config", h.config(t, map[string]server{}, test.global)}, test.args...)
		if out, stderr, code := h.run(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n", args...); code != 0 || !strings.Contains(out, `"id":1,"result"`) {
			t.Errorf("%s: exit %d, %q, %s", name, code, out, stderr)
		}
		if pids := h.daemons(t); len(pids) != 0 {
			t.Errorf("%s: daemons %v", name, pids)
		}
	}
}

// TestDaemon_Folder: where another user could enter the folder of the sockets, there is no daemon.
func TestDaemon_Folder(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	open := filepath.Join(h.dir, "open")
	for _, err := range []error{os.MkdirAll(filepath.Join(open, "mcpx"), 0o700), os.Chmod(filepath.Join(open, "mcpx"), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	h.extra = append(h.extra, "XDG_RUNTIME_DIR="+open)
	out, stderr, code := h.run(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n", "--config", h.config(t, map[string]server{}, nil))
	if code != 0 || !strings.Contains(out, `"id":1,"result"`) || !strings.Contains(stderr, "must be a folder of this user, with mode 0700") {
		t.Errorf("exit %d, %q, %s", code, out, stderr)
	}
}

// TestDaemon_Update: another build of mcpx has another daemon, and the sessions of the one before go on. Commands of the new build
// reach both daemons.
func TestDaemon_Update(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	c := &client{peer: h.serveStdio(t, "--config", config), era: legacy, name: "e2e"}
	c.open(t)
	updated := filepath.Join(h.dir, "updated")
	// A child writes it: a file that this process has open for writing may be inherited by a process that a parallel test starts just now, and
	// as long as that process has it open, the file cannot be executed ("text file busy").
	if out, err := exec.Command("sh", "-c", `cp "$0" "$1" && printf x >>"$1"`, binary(t), updated).CombinedOutput(); err != nil {
		t.Fatalf("copying mcpx: %v %s", err, out)
	}
	run := func(want int, args ...string) string {
		t.Helper()
		cmd := exec.Command(updated, append([]string{"--config", config}, args...)...)
		cmd.Env, cmd.Stdin = h.env(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	if said := run(0); !strings.Contains(said, `"id":1,"result"`) {
		t.Error(said)
	}
	if pids := h.daemons(t); len(pids) != 2 {
		t.Errorf("daemons: %v", pids)
	}
	if r := c.exec(t, "fake", "echo", `{"text":"still"}`); r.text(t) != "still" {
		t.Errorf("got %s", r.Content)
	}
	if said := run(0, "status"); strings.Count(said, "The daemon ") != 2 {
		t.Errorf("status: %s", said)
	}
	if said := run(0, "exec", "fake", "pid"); said == "" {
		t.Error("no result of exec")
	}
	if said := run(0, "restart", "fake"); strings.Count(said, "fake starts anew in 1 session\n") != 2 {
		t.Errorf("restart: %s", said)
	}
	if said := run(0, "stop"); said != "" || len(h.daemons(t)) != 0 {
		t.Errorf("stop: %s, and %v still run", said, h.daemons(t))
	}
}

// TestDaemon_Namespace: a session that runs in other namespaces than the daemon does not use the daemon, and serves by itself.
func TestDaemon_Namespace(t *testing.T) {
	mcptest.Parallel(t)
	if out, err := exec.Command("unshare", "--user", "--map-root-user", "--net", "true").CombinedOutput(); err != nil {
		t.Skipf("this system makes no namespaces: %v %s", err, out)
	}
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{}, nil)
	h.run(t, "", "--config", config)
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--net", binary(t), "--config", config)
	cmd.Env, cmd.Stdin = h.env(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"id":1,"result"`) || !strings.Contains(string(out), "serving without the daemon") {
		t.Errorf("%v: %s", err, out)
	}
}

// hello is the first message of a client.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + legacy +
	`","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`
