package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/tokens"
)

// TestDaemon_Exec: commands in one folder share a server, which stays up between them. Commands in another folder have a server
// process of their own. After a change of the config, a new process is started.
func TestDaemon_Exec(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
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

// TestDaemon_ForeignEncoding: JSON cannot tell the daemon of a folder or a variable that is not UTF-8, so the command runs by itself.
func TestDaemon_ForeignEncoding(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	folder := filepath.Join(t.TempDir(), "caf\xe9")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := h.command(t, "--config", config, "exec", "fake", "echo", "text=x")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "x\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// TestDaemon_ExecInterrupted: Ctrl-C ends a call, and the daemon and the server live on.
func TestDaemon_ExecInterrupted(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
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

// TestDaemon_Commands: if no daemon runs, the commands status, logs, restart and stop say so, and start none. If one runs, they
// work in it.
func TestDaemon_Commands(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
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
			Servers []struct {
				Name, State string
				PIDs        []int
				Memory      int64
			}
		}
	}
	if err := json.Unmarshal([]byte(run(0, "status", "--json")), &state); err != nil || !state.Running || state.PID != h.daemons(t)[0] ||
		state.Processes != 1 || len(state.Sessions) != 1 || state.Sessions[0].Kind != "stdio" || state.Sessions[0].PID != p.cmd.Process.Pid ||
		len(state.Sessions[0].Servers) != 1 {
		t.Errorf("%v: %+v", err, state)
	}
	if one := state.Sessions[0].Servers[0]; one.Name != "fake" || one.State != "ready" || fmt.Sprint(one.PIDs) != "["+before+"]" || one.Memory < 1<<20 {
		t.Errorf("got %+v", one)
	}
	if said := run(0, "status"); !strings.Contains(said, "1 session, 1 process of servers") || !regexp.MustCompile(`fake ready \d+ MB`).MatchString(said) {
		t.Errorf("got %s", said)
	}
	if said := run(0, "logs", "fake"); !strings.Contains(said, "msg=connected server=fake") {
		t.Errorf("got %s", said)
	}
	for _, follow := range [][]string{nil, {"-f"}} {
		if said := run(1, append([]string{"logs", "fke"}, follow...)...); !strings.Contains(said, `no session of the daemon has a server "fke"`) {
			t.Errorf("got %s", said)
		}
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

// TestDaemon_ExecLogs: mcpx logs has what the server of mcpx exec did, at the level that the config names. The command itself prints
// errors at most.
func TestDaemon_ExecLogs(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, map[string]any{"log_level": "debug"})
	if _, stderr, code := h.run(t, "", "--config", config, "exec", "fake", "crash"); code != 1 || strings.Contains(stderr, "level=") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	var out string
	mcptest.WaitFor(t, "the line about the end", patience, func() bool {
		out, _, _ = h.run(t, "", "--config", config, "logs", "fake")
		return strings.Contains(out, `level=WARN msg="session lost" server=fake`)
	})
	for _, want := range []string{`level=DEBUG msg="process started" server=fake`, "level=INFO msg=connected server=fake"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in:\n%s", want, out)
		}
	}
}

// TestDaemon_Environments: a variable that the SDKs of clients leave out, such as TZ, leads to no second daemon. A variable for
// a proxy does: status shows both daemons, and stop ends both.
func TestDaemon_Environments(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{}), "once": fake(t, mcptest.Spec{})}, nil)
	run := func(args ...string) string {
		t.Helper()
		out, stderr, code := h.run(t, "", append([]string{"--config", config}, args...)...)
		if code != 0 {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
		return out + stderr
	}
	extra := h.extra
	for i, with := range [][]string{{"TZ=Asia/Tokyo"}, {"TMPDIR=/tmp"}, {"HTTPS_PROXY=http://127.0.0.1:1"}} {
		h.extra = slices.Concat(extra, with)
		run("exec", "fake", "pid")
		if pids := h.daemons(t); len(pids) != 1+i/2 {
			t.Fatalf("with %s there are the daemons %v", with, pids)
		}
	}
	h.extra = extra
	run("exec", "once", "pid")
	if said := run("restart", "once"); !strings.Contains(said, "once starts anew in 1 session\n") { // in the only daemon that has it
		t.Errorf("got %s", said)
	}
	if said := run("status"); strings.Count(said, "The daemon ") != 2 {
		t.Errorf("got %s", said)
	}
	if said := run("stop"); said != "" || len(h.daemons(t)) != 0 {
		t.Errorf("got %s and %v", said, h.daemons(t))
	}
}

// TestDaemon_Inspect: mcpx inspect starts no daemon. If a daemon runs, mcpx inspect works in it. A server that has to be started
// then also serves the next mcpx exec. A server whose catalogue is on disk is not started, and mcpx inspect prints the newest
// catalogue on disk.
func TestDaemon_Inspect(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	tools := h.write(t, "tools.json", `[{"name":"pid","description":"First.","inputSchema":{"type":"object"}}]`)
	fresh, spec := mcptest.Spec{}.WithFiles(t), mcptest.Spec{ToolsFile: tools}.WithFiles(t)
	config := h.config(t, map[string]server{"fake": fake(t, fresh), "listed": fake(t, spec), "other": fake(t, mcptest.Spec{})}, nil)
	run := func(want string, args ...string) {
		t.Helper()
		out, stderr, code := h.run(t, "", append([]string{"--config", config}, args...)...)
		if code != 0 || stderr != "" || !strings.Contains(out, want) {
			t.Errorf("%v: exit %d, %q, %s", args, code, out, stderr)
		}
	}
	run("First.", "inspect", "listed", "pid")
	if pids := h.daemons(t); len(pids) != 0 {
		t.Errorf("mcpx inspect has started %v", pids)
	}
	run("", "exec", "other", "pid")
	run("echo", "inspect", "fake", "echo")
	run("", "exec", "fake", "pid")
	if n := len(fresh.Pids(t)); n != 1 {
		t.Errorf("inspect and exec have started %d processes", n)
	}
	run("First.", "inspect", "listed", "pid")
	if n := len(spec.Pids(t)); n != 1 {
		t.Errorf("%d processes were started", n)
	}
	h.write(t, "tools.json", `[{"name":"pid","description":"Second.","inputSchema":{"type":"object"}}]`)
	run("ready", "check", "listed")
	run("Second.", "inspect", "listed", "pid")
}

// TestDaemon_Login: after mcpx login, the sessions in the daemon use the login.
func TestDaemon_Login(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	path := checkLogin(t, h)
	// Otherwise the test server would wait for the open stream of mcpx.
	if _, stderr, code := h.run(t, "", "--config", path, "stop"); code != 0 {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// TestDaemon_Lock: after mcpx lock has approved a tool, the sessions in the daemon can call it.
func TestDaemon_Lock(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, map[string]any{"pin": "block"})
	c := &client{peer: h.serveStdio(t, "--config", config), era: legacy, name: "e2e"}
	c.open(t)
	c.awaitTried(t, "fake")
	checkFault(t, "before the approval", c.exec(t, "fake", "echo", `{"text":"x"}`), "TOOL_NOT_FOUND", "echo")
	if out, stderr, code := h.run(t, "", "--config", config, "lock", "--yes"); code != 0 {
		t.Fatalf("exit %d, %s%s", code, out, stderr)
	}
	mcptest.WaitFor(t, "the approved tool", patience, func() bool { return !c.exec(t, "fake", "echo", `{"text":"x"}`).IsError })
}

// TestDaemon_ExecBeside: what mcpx lock approves, and a changed program, take effect with the next mcpx exec. The server stays up.
func TestDaemon_ExecBeside(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	shared := fake(t, mcptest.Spec{})
	shared["share"] = "user"
	config := h.config(t, map[string]server{"fake": shared}, map[string]any{"pin": "block"})
	exec := func(want int, args ...string) string {
		t.Helper()
		out, stderr, code := h.run(t, "", append([]string{"--config", config, "exec"}, args...)...)
		if code != want {
			t.Errorf("%q: exit %d, %s%s", args, code, out, stderr)
		}
		return out
	}
	exec(exitFailed, "fake", "pid")
	if out, stderr, code := h.run(t, "", "--config", config, "lock", "--yes"); code != 0 {
		t.Fatalf("exit %d, %s%s", code, out, stderr)
	}
	first := exec(exitOK, "fake", "pid")
	for _, want := range []string{"one", "two"} {
		h.write(t, "programs/mine.js", `/** Returns a word. */ return await call("fake", "echo", {text: "`+want+`"})`)
		if got := exec(exitOK, "mcpx", "mine"); got != want+"\n" {
			t.Errorf("the program printed %q, not %s", got, want)
		}
	}
	if again := exec(exitOK, "fake", "pid"); again != first {
		t.Errorf("the server is %s, then %s", first, again)
	}
}

// TestDaemon_CI: mcpx exec starts no daemon where CI is set.
func TestDaemon_CI(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	h.extra = append(h.extra, "CI=true")
	out, stderr, code := h.run(t, "", "--config", h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil), "exec", "fake", "echo", "text=hello")
	if pids := h.daemons(t); code != 0 || out != "hello\n" || stderr != "" || len(pids) != 0 {
		t.Errorf("exit %d, %q %q, daemons %v", code, out, stderr, pids)
	}
}

// TestSkill: what mcpx skill prints is short, and names the limit that --each has.
func TestSkill(t *testing.T) {
	if limit := fmt.Sprintf("up to %d calls", executor.MaxEach); !strings.Contains(skill, limit) {
		t.Errorf("it does not say %q", limit)
	}
	if n := tokens.Count(skill); n > 400 {
		t.Errorf("%d tokens", n)
	}
}
