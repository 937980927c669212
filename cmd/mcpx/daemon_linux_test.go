package main

import (
	"encoding/json"
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
	"mcpx/internal/tokens"
)

// newDesk returns a home in which sessions over stdio use the daemon, which ends with the test.
func newDesk(t testing.TB) *home {
	t.Helper()
	h := newHome(t)
	h.desk = true
	dir, err := os.MkdirTemp("/tmp", "mcpx-desk-") // not t.TempDir, because the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	h.extra = append(h.extra, "XDG_RUNTIME_DIR="+dir)
	t.Cleanup(func() {
		for _, pid := range h.daemons(t) {
			_ = syscall.Kill(pid, syscall.SIGTERM)
			mcptest.WaitFor(t, "the end of the daemon", patience, func() bool { return !mcptest.Alive(pid) })
		}
		if said, _ := filepath.Glob(filepath.Join(dir, "mcpx", "*.log")); t.Failed() && len(said) > 0 {
			text, _ := os.ReadFile(said[0])
			t.Logf("the daemon said: %s", text)
		}
		os.RemoveAll(dir)
	})
	return h
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
	h := newDesk(t)
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
	h := newDesk(t)
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

// TestDaemon_Stopped: while the daemon is stopped with SIGSTOP, a new session serves by itself after a moment. The command
// of a session that the daemon has ends with a clear line.
func TestDaemon_Stopped(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	p := h.serveStdio(t, "--config", config)
	c := &client{peer: p, era: legacy, name: "e2e"}
	c.open(t)
	pids := h.daemons(t)
	if len(pids) != 1 {
		t.Fatalf("daemons: %v", pids)
	}
	_ = syscall.Kill(pids[0], syscall.SIGSTOP)
	defer syscall.Kill(pids[0], syscall.SIGCONT)
	h.extra = append(h.extra, "MCPX_DAEMON_WITHIN=300ms")
	out, stderr, code := h.run(t, `{"jsonrpc":"2.0","id":7,"method":"ping"}`+"\n", "--config", config)
	if code != 0 || !strings.Contains(out, `"id":7,"result"`) || !strings.Contains(stderr, "serving without the daemon") {
		t.Errorf("exit %d, %q, %s", code, out, stderr)
	}
	if mcptest.Full { // takes 11 s
		p.wait(t)
		if !strings.Contains(p.stderr.String(), "the daemon has given no sign for 10s; this session has ended with it") {
			t.Errorf("%s", p.stderr.String())
		}
	}
}

// TestDaemon_Session: a session in the daemon has the variables, the folder and the umask of its own command, and its
// servers end with it, also when the command is killed. The daemon has none of these.
func TestDaemon_Session(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
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

// TestDaemon_Reload: a changed config file reaches the sessions that are open.
func TestDaemon_Reload(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
	config := h.config(t, map[string]server{"one": fake(t, mcptest.Spec{})}, nil)
	c := &client{peer: h.serveStdio(t, "--config", config), era: legacy, name: "e2e"}
	c.open(t)
	c.awaitTried(t, "one")
	h.config(t, map[string]server{"one": fake(t, mcptest.Spec{}), "two": fake(t, mcptest.Spec{})}, nil)
	c.awaitTried(t, "one", "two")
}

// TestDaemon_None: these sessions serve by themselves and start no daemon.
func TestDaemon_None(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
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
		h := &home{dir: h.dir, extra: append(append([]string{}, h.extra...), test.env...), desk: true}
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
	h := newDesk(t)
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

// TestDaemon_Exec: commands in one folder share a server, which stays up between them. In another folder it is another one.
// After a change of the config it is a new one.
func TestDaemon_Exec(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{}), "other": fake(t, mcptest.Spec{}.WithFiles(t))}, nil)
	call := func(folder string) string {
		t.Helper()
		cmd := h.command(t, "--config", config, "exec", "fake", "pid")
		cmd.Dir = folder
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || stderr.Len() > 0 {
			t.Fatalf("%v: %s%s", err, out, stderr.String())
		}
		return string(out)
	}
	first := call(h.dir)
	if again := call(h.dir); again != first {
		t.Errorf("the server is %s, then %s", first, again)
	}
	if elsewhere := call(t.TempDir()); elsewhere == first {
		t.Errorf("two folders share %s", first)
	}
	out, stderr, code := h.run(t, `{"text":"from stdin"}`, "--config", config, "exec", "fake", "echo", "-")
	if code != 0 || out != "from stdin\n" {
		t.Errorf("exit %d, %q %s", code, out, stderr)
	}
	out, stderr, code = h.run(t, "", "--config", config, "exec", "fake", "no_such")
	alone, aloneErr, aloneCode := h.run(t, "", "--config", config, "--no-daemon", "exec", "fake", "no_such")
	if code != aloneCode || out != alone || stderr != aloneErr {
		t.Errorf("exit %d %q %q; without the daemon %d %q %q", code, out, stderr, aloneCode, alone, aloneErr)
	}
	h.config(t, map[string]server{"fake": {"command": fake(t, mcptest.Spec{})["command"], "args": fake(t, mcptest.Spec{})["args"], "env": fake(t, mcptest.Spec{})["env"]}}, nil)
	if changed := call(h.dir); changed == first {
		t.Errorf("after the change of the config it is still %s", first)
	}
}

// TestDaemon_ExecInterrupted: Ctrl-C ends a call, and the daemon and the server live on.
func TestDaemon_ExecInterrupted(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
	spec := mcptest.Spec{}.WithFiles(t)
	config := h.config(t, map[string]server{"fake": fake(t, spec)}, nil)
	first, _, _ := h.run(t, "", "--config", config, "exec", "fake", "pid")
	cmd := h.command(t, "--config", config, "exec", "fake", "slow", "ms=3600000")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	mcptest.WaitFor(t, "the call", patience, func() bool { return len(spec.Log(t).Calls("slow")) == 1 })
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err == nil || !strings.Contains(stderr.String(), "mcpx: error: interrupted") {
		t.Errorf("%v: %s", err, stderr.String())
	}
	mcptest.WaitFor(t, "the cancellation", patience, func() bool { return len(spec.Log(t).Event(mcptest.EventCancel)) == 1 })
	if again, _, _ := h.run(t, "", "--config", config, "exec", "fake", "pid"); again != first {
		t.Errorf("the server is %s, then %s", first, again)
	}
}

// TestDaemon_Commands: status, logs, restart and stop, with a daemon and without one.
func TestDaemon_Commands(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	run := func(want int, args ...string) string {
		t.Helper()
		out, stderr, code := h.run(t, "", append([]string{"--config", config}, args...)...)
		if code != want {
			t.Errorf("%v: exit %d, %s%s", args, code, out, stderr)
		}
		return out + stderr
	}
	for _, command := range [][]string{{"status"}, {"logs"}, {"restart", "fake"}, {"stop"}} {
		if said := run(0, command...); said != "no daemon runs for "+config+"\n" {
			t.Errorf("%v: %s", command, said)
		}
	}
	if said := run(0, "status", "--json"); said != `{"running":false}`+"\n" {
		t.Errorf("got %s", said)
	}
	if pids := h.daemons(t); len(pids) != 0 {
		t.Errorf("a command has started %v", pids)
	}
	p := h.serveStdio(t, "--config", config)
	c := &client{peer: p, era: legacy, name: "e2e"}
	c.open(t)
	before := c.exec(t, "fake", "pid", `{}`).text(t)
	var state struct {
		Running   bool
		PID       int
		Processes int
		Sessions  []struct {
			Kind    string
			PID     int
			Servers []struct{ Name, State string }
		}
	}
	if err := json.Unmarshal([]byte(run(0, "status", "--json")), &state); err != nil || !state.Running || state.PID != h.daemons(t)[0] ||
		state.Processes != 1 || len(state.Sessions) != 1 || state.Sessions[0].Kind != "stdio" || state.Sessions[0].PID != p.cmd.Process.Pid ||
		fmt.Sprint(state.Sessions[0].Servers) != "[{fake ready}]" {
		t.Errorf("%v: %+v", err, state)
	}
	if said := run(0, "status"); !strings.Contains(said, "1 session, 1 process of servers") || !strings.Contains(said, "fake ready") {
		t.Errorf("got %s", said)
	}
	if said := run(0, "logs", "fake"); !strings.Contains(said, "msg=connected server=fake") {
		t.Errorf("got %s", said)
	}
	if said := run(1, "restart", "fke"); !strings.Contains(said, `no session of the daemon has a server "fke" that runs`) {
		t.Errorf("got %s", said)
	}
	if said := run(0, "restart", "fake"); said != "fake starts anew in 1 session\n" {
		t.Errorf("got %s", said)
	}
	if after := c.exec(t, "fake", "pid", `{}`).text(t); after == before {
		t.Errorf("after the restart it is still %s", after)
	}
	if said := run(0, "stop"); said != "" {
		t.Errorf("got %s", said)
	}
	p.wait(t)
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the session: exit %d, %s", code, p.stderr.String())
	}
	if pids := h.daemons(t); len(pids) != 0 {
		t.Errorf("%v still run", pids)
	}
}

// TestDaemon_CI: mcpx exec starts no daemon where CI is set.
func TestDaemon_CI(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
	h.extra = append(h.extra, "CI=true")
	out, stderr, code := h.run(t, "", "--config", h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil), "exec", "fake", "echo", "text=hello")
	if pids := h.daemons(t); code != 0 || out != "hello\n" || stderr != "" || len(pids) != 0 {
		t.Errorf("exit %d, %q %q, daemons %v", code, out, stderr, pids)
	}
}

// TestDaemon_FirstUse: the process of one session starts when the session uses it. Before, its catalogue is the one on disk.
func TestDaemon_FirstUse(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
	spec := mcptest.Spec{}.WithFiles(t)
	config := h.config(t, map[string]server{"fake": fake(t, spec)}, nil)
	open := func() *client {
		c := &client{peer: h.serveStdio(t, "--config", config), era: legacy, name: "e2e"}
		c.open(t)
		return c
	}
	open().awaitTried(t, "fake")
	started := len(spec.Pids(t))
	c := open()
	if tools := c.list(t); !strings.Contains(tools[0].Description, "echo(text)") {
		t.Errorf("got %s", tools[0].Description)
	}
	mcptest.WaitFor(t, "the state idle", patience, func() bool {
		return strings.Contains(string(c.tool(t, "inspect", `{}`).Structured), `"name":"fake","state":"idle"`)
	})
	if n := len(spec.Pids(t)); n != started {
		t.Errorf("%d processes were started, then %d", started, n)
	}
	c.exec(t, "fake", "echo", `{"text":"up"}`)
	if n := len(spec.Pids(t)); n != started+1 {
		t.Errorf("%d processes were started, then %d", started, n)
	}
}

// TestSkill: what mcpx skill prints is short.
func TestSkill(t *testing.T) {
	if n := tokens.Count(skill); n > 400 {
		t.Errorf("%d tokens", n)
	}
}

// TestDaemon_Share: sessions share a server as the key share says, also with mcpx exec. A shared server outlives the session
// that has started it, and ends some time after the last one.
func TestDaemon_Share(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
	servers := make(map[string]server)
	for _, share := range []string{"user", "folder", "session"} {
		servers[share] = fake(t, mcptest.Spec{})
		servers[share]["share"] = share
	}
	config := h.config(t, servers, map[string]any{"daemon_idle": 600})
	here, there := t.TempDir(), t.TempDir()
	type session struct {
		*client
		peer *stdioPeer
		pids map[string]string
	}
	open := func(folder, era string) *session {
		cmd := h.command(t, "--config", config)
		cmd.Dir = folder
		p := startStdio(t, cmd)
		s := &session{&client{peer: p, era: era, name: "e2e"}, p, make(map[string]string)}
		s.open(t)
		for name := range servers {
			s.pids[name] = s.exec(t, name, "pid", `{}`).text(t)
		}
		return s
	}
	all := []*session{open(here, legacy), open(here, modern), open(there, legacy)}
	for i, one := range all {
		for j, other := range all[:i] {
			for name := range servers {
				want := name == "user" || name == "folder" && j == 0 && i == 1
				if got := one.pids[name] == other.pids[name]; got != want {
					t.Errorf("sessions %d and %d, %s: shared %v, want %v", i, j, name, got, want)
				}
			}
		}
	}
	cmd := h.command(t, "--config", config, "exec", "user", "pid")
	cmd.Dir = here
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != all[0].pids["user"] {
		t.Errorf("mcpx exec: %v, %s", err, out)
	}
	_ = all[0].peer.cmd.Process.Kill()
	all[0].peer.wait(t)
	for name, pid := range all[0].pids {
		number, _ := strconv.Atoi(pid)
		if name == "session" {
			mcptest.WaitFor(t, "the end of the server of the killed session", patience, func() bool { return !mcptest.Alive(number) })
		} else if !mcptest.Alive(number) {
			t.Errorf("%s has ended with a session of several", name)
		}
	}
	for name, pid := range all[1].pids {
		if again := all[1].exec(t, name, "pid", `{}`).text(t); again != pid {
			t.Errorf("%s is %s, then %s", name, pid, again)
		}
	}
	delete(servers, "folder")
	h.config(t, servers, map[string]any{"daemon_idle": 600})
	number, _ := strconv.Atoi(all[1].pids["folder"])
	mcptest.WaitFor(t, "the end of a server that no config has any more", patience, func() bool { return !mcptest.Alive(number) })
}

// TestDaemon_ShareEnds: a shared server ends when it had no session for daemon_idle, and so does the daemon.
func TestDaemon_ShareEnds(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
	one := fake(t, mcptest.Spec{})
	one["share"] = "user"
	p := h.serveStdio(t, "--config", h.config(t, map[string]server{"one": one}, map[string]any{"daemon_idle": 0.2}))
	c := &client{peer: p, era: legacy, name: "e2e"}
	c.open(t)
	pid, _ := strconv.Atoi(c.exec(t, "one", "pid", `{}`).text(t))
	p.stdin.Close()
	p.wait(t)
	mcptest.WaitFor(t, "the end of the server", patience, func() bool { return !mcptest.Alive(pid) })
	mcptest.WaitFor(t, "the end of the daemon", patience, func() bool { return len(h.daemons(t)) == 0 })
}

// TestDaemon_ShareAsked: a server that asks the user gets its answer from the client of the call. From then on each new
// session has a process of its own.
func TestDaemon_ShareAsked(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
	one := fake(t, mcptest.Spec{})
	one["share"] = "user"
	config := h.config(t, map[string]server{"one": one}, nil)
	open := func() (*client, *stdioPeer, string) {
		p := h.serveStdio(t, "--config", config)
		c := &client{peer: p, era: legacy, name: "e2e", caps: `{"elicitation":{}}`}
		c.open(t)
		return c, p, c.exec(t, "one", "pid", `{}`).text(t)
	}
	_, _, first := open()
	asking, p, second := open()
	if first != second {
		t.Fatalf("%s and %s are not shared", first, second)
	}
	id := asking.start(t, "tools/call", `{"name":"exec","arguments":`+execArgs("one", "ask", `{}`)+`}`, "")
	var question message
	mcptest.WaitFor(t, "the question", patience, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, question = range p.all {
			if question.Method == "elicitation/create" {
				return true
			}
		}
		return false
	})
	p.send(t, `{"jsonrpc":"2.0","id":`+string(question.ID)+`,"result":{"action":"accept","content":{"word":"plover"}}}`)
	if m := asking.answer(t, id); !strings.Contains(string(m.Result), "plover") {
		t.Errorf("got %s %s", m.Result, m.Error)
	}
	if _, _, third := open(); third == first {
		t.Errorf("a server that asks is shared: %s", third)
	}
}
