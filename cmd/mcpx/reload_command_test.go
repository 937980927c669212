package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"mcpx/internal/desk/control"
	"mcpx/internal/mcptest"
)

const (
	loadedAgain = `msg="config loaded again"`
	refused     = `level=ERROR msg="config refused`
)

// openOver serves a config over stdio or HTTP, and returns a legacy client that listens for notifications.
func openOver(t *testing.T, h *home, over string, args ...string) (*client, *stdioPeer) {
	t.Helper()
	if over != "http" {
		args = append([]string{"--log-level", "info"}, args...)
	}
	c, p := serveOver(t, h, over, legacy, args...)
	c.open(t)
	c.listen(t)
	return c, p
}

func callExec(t *testing.T, c *client, server, tool, arguments string) string {
	t.Helper()
	return c.start(t, "tools/call", `{"name":"exec","arguments":`+execArgs(server, tool, arguments)+`}`, "")
}

// reload runs mcpx reload with this config.
func (h *home) reload(t *testing.T, config string) (out, stderr string, code int) {
	t.Helper()
	return h.run(t, "", "--config", config, "reload")
}

// TestReloadCommand: every mcpx that uses the config file reloads it and reports what has changed; other mcpx
// processes do nothing. A file with faults is refused: the faults are printed, and the exit code is 2. Calls
// of clients are not interrupted.
func TestReloadCommand(t *testing.T) {
	if everyDaemon {
		t.Skip("sessions of the daemon follow the file without the command")
	}
	mcptest.Parallel(t)
	h := newHome(t)
	kept := mcptest.Spec{}.WithFiles(t)
	servers := map[string]server{"keep": fake(t, kept), "change": fake(t, mcptest.Spec{}), "drop": fake(t, mcptest.Spec{})}
	config := h.config(t, servers, nil)
	stdio, first := openOver(t, h, "stdio", "--config", config)
	web, second := openOver(t, h, "http", "--config", config)
	strange := h.write(t, "other.json", `{"mcpServers":{}}`)
	_, third := openOver(t, h, "stdio", "--config", strange)
	for _, c := range []*client{stdio, web} {
		for name := range servers {
			c.exec(t, name, "pid", `{}`)
		}
	}
	long := callExec(t, web, "keep", "slow", `{"ms":1500}`)
	mcptest.WaitFor(t, "the call", patience, func() bool { return len(kept.Log(t).Calls("slow")) > 0 })

	if out, stderr, code := h.reload(t, config); code != 0 || strings.Count(out, "nothing has changed\n") != 2 {
		t.Errorf("without a change: exit %d, %q, %q", code, out, stderr)
	}
	lonely := h.write(t, "lonely.json", `{"mcpServers":{}}`)
	for file, want := range map[string]string{
		strange: "1 running mcpx reads the file: mcpx reload --config " + strange + " makes it take the change", lonely: "",
	} {
		out, stderr, code := h.run(t, "", "--config", file, "add", "new", "--no-check", "--", "false")
		if code != 0 || strings.Contains(out, "running mcpx") != (want != "") || !strings.Contains(out, want) {
			t.Errorf("add to a file: exit %d, %q, %q, want %q", code, out, stderr, want)
		}
	}
	delete(servers, "drop")
	servers["keep"]["description"] = "What is kept."
	servers["change"] = fake(t, mcptest.Spec{Instructions: "Another one."})
	servers["add"] = fake(t, mcptest.Spec{})
	servers["unset"] = server{"command": "${MCPX_NOT_SET}"}
	h.config(t, servers, map[string]any{"structured_content": "never", "clients": map[string]any{}, "shutdown_grace": 7})
	link := filepath.Join(h.dir, "link.json")
	if os.Symlink(config, link) != nil { // some Windows systems do not permit users to make symbolic links
		link = config
	}
	out, stderr, code := h.reload(t, link)
	for _, want := range []string{" (stdio)  ", " (http://127.0.0.1:"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %q", want, out)
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		for _, want := range []string{"started add;", "stopped drop;", "restarted change;", "changed keep", "in force: structured_content, clients;",
			"after a restart: shutdown_grace", "unavailable: mcpServers.unset"} {
			if !strings.Contains(line, want) {
				t.Errorf("no %q in %q", want, line)
			}
		}
	}
	if code != 0 || strings.Count(out, "\n") != 2 || stderr != "" {
		t.Errorf("exit %d, %q, %q", code, out, stderr)
	}
	for _, c := range []*client{stdio, web} {
		c.exec(t, "add", "pid", `{}`)
	}
	if m := web.answer(t, long); !strings.Contains(string(m.Result), "slept 1500 ms") {
		t.Errorf("the open call of an unchanged server: %s %s", m.Result, m.Error)
	}
	if n := third.logged(loadedAgain); n != 0 {
		t.Errorf("an mcpx of another file reloaded %d times", n)
	}

	h.write(t, "mcpx.json", `{"mcpServers":{"keep":{"comand":"x"}},"startup_wait":"soon"}`)
	out, stderr, code = h.reload(t, config)
	if code != 2 || out != "" || strings.Count(stderr, "mcpServers.keep.comand") != 2 || strings.Count(stderr, "startup_wait: must be") != 2 {
		t.Errorf("a faulty file: exit %d, %q, %q", code, out, stderr)
	}
	h.write(t, "mcpx.json", `{"mcpServers":`)
	if _, stderr, code = h.reload(t, config); code != 2 || strings.Count(stderr, "mcpx.json:1:") != 2 {
		t.Errorf("a broken file: exit %d, %q", code, stderr)
	}
	stdio.exec(t, "keep", "pid", `{}`)

	// A killed mcpx does not disturb the command, and an mcpx that has ended leaves no files behind.
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.exited
	h.config(t, servers, nil)
	if out, stderr, code := h.reload(t, config); code != 0 || strings.Count(out, "\n") != 1 || stderr != "" {
		t.Errorf("with a killed mcpx: exit %d, %q, %q", code, out, stderr)
	}
	terminate(second.cmd)
	<-second.exited
	out, stderr, code = h.reload(t, config)
	if code != 1 || !strings.Contains(stderr, "no running mcpx reads "+config) || !strings.Contains(stderr, strange) {
		t.Errorf("without an mcpx: exit %d, %q, %q", code, out, stderr)
	}
}

// TestReloadCommand_Sessions: sessions of a daemon that have ended alike have one line, with their number.
func TestReloadCommand_Sessions(t *testing.T) {
	var out, stderr strings.Builder
	one := func(pid int) *control.Running {
		return &control.Running{Process: control.Process{PID: pid, Serves: "stdio"}}
	}
	added, refused := control.Outcome{Started: []string{"new"}}, control.Outcome{Refused: []string{"a: bad", "b: bad"}, Faults: true}
	err := printOutcomes(streams{out: &out, err: &stderr}, []*control.Running{one(1), one(2), one(2), one(2), one(2), one(2), one(2)},
		[]control.Outcome{added, added, added, refused, added, refused, {}}, []error{6: errors.New("gone")})
	if want := "1 (stdio)  started new\n2 (stdio, 3 sessions)  started new\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
	said := "mcpx: error: 2 (stdio, 2 sessions): refused, the old config stays in force: "
	if want := said + "a: bad\n" + said + "b: bad\nmcpx: error: 2 (stdio): gone\n"; stderr.String() != want || err != errConfigFailed {
		t.Errorf("got %v and %q, want %q", err, &stderr, want)
	}
}

// TestReloadCommand_Ignored: under nohup mcpx logs that SIGHUP has no effect; mcpx reload works.
func TestReloadCommand_Ignored(t *testing.T) {
	mcptest.Parallel(t)
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGHUP")
	}
	h := newHome(t)
	config := h.config(t, map[string]server{"one": fake(t, mcptest.Spec{})}, nil)
	cmd := h.command(t, "--config", config, "serve", "--http", "127.0.0.1:0")
	path := cmd.Path
	cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	d := h.serving(t, cmd)
	if d.logged("SIGHUP is ignored", "mcpx reload") != 1 {
		t.Error("the start does not say that SIGHUP is ignored")
	}
	d.follow(t, loadedAgain, func() {
		if out, stderr, code := h.reload(t, config); code != 0 {
			t.Errorf("exit %d, %q, %q", code, out, stderr)
		}
	})
	// An mcpx that was not started under nohup does not log this.
	if other := h.serveHTTP(t, "--config", config); other.logged("SIGHUP") != 0 {
		t.Error("SIGHUP is named where it works")
	}
}
