package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// figures matches what may differ between two runs of mcpx check, and the layout of its tables.
var figures = regexp.MustCompile(`[0-9.]+ (s|MB|processes)\b| +|─+`)

// TestDaemon_Check: mcpx check, lock and budget do not start a server again that sessions in the daemon share. They print the
// same as without a daemon. check prints the present state of such a server, even if the server no longer answers.
func TestDaemon_Check(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	tools, wedge := filepath.Join(h.dir, "tools.json"), filepath.Join(h.dir, "wedge")
	spec := mcptest.Spec{ToolsFile: tools, WedgeFile: wedge}.WithFiles(t)
	shared := fake(t, spec)
	shared["share"] = "user"
	config := h.config(t, map[string]server{"shared": shared, "own": fake(t, mcptest.Spec{}), "down": {"command": "/no/such"}}, nil)
	run := func(want int, args ...string) string {
		t.Helper()
		out, stderr, code := h.run(t, "", append([]string{"--config", config}, args...)...)
		if code != want || stderr != "" {
			t.Errorf("%v: exit %d, %s%s", args, code, out, stderr)
		}
		return figures.ReplaceAllString(out, " ")
	}
	p := h.serveStdio(t, "--config", config)
	c := &client{peer: p, era: legacy, name: "e2e"}
	c.open(t)
	c.awaitTried(t, "shared", "own")
	p.stdin.Close()
	p.wait(t) // now check shows what the session has saved; the server goes on
	inside, json := run(exitFailed, "check"), run(exitOK, "check", "shared", "own", "--json", "--timeout", "1m")
	run(exitOK, "budget")
	locked := run(exitOK, "lock", "--yes")
	if err := os.Remove(filepath.Join(h.dir, "mcpx.lock.json")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(tools, []byte(`[{"name":"only","inputSchema":{"type":"object"}}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := run(exitOK, "check", "shared.only"); !strings.Contains(out, "1 tool") {
		t.Errorf("changed tools: %s", out)
	}
	if err := os.WriteFile(wedge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := run(exitFailed, "check", "shared", "--timeout", "1"); !strings.Contains(out, "degraded") || !strings.Contains(out, "no answer to tools/list yet") {
		t.Errorf("a server that hangs: %s", out)
	}
	if n := len(spec.Pids(t)); n != 1 {
		t.Errorf("%d processes were started", n)
	}
	if os.Remove(tools) != nil || os.Remove(wedge) != nil {
		t.Fatal("removing files")
	}
	run(exitOK, "stop")
	if outside := run(exitFailed, "check"); outside != inside {
		t.Errorf("with the daemon %s\nwithout %s", inside, outside)
	}
	seconds := regexp.MustCompile(`"seconds": [0-9.]+`)
	if outside := run(exitOK, "check", "shared", "own", "--json", "--timeout", "1m"); seconds.ReplaceAllString(outside, "") != seconds.ReplaceAllString(json, "") {
		t.Errorf("with the daemon %s\nwithout %s", json, outside)
	}
	if outside := run(exitOK, "lock", "--yes"); outside != locked {
		t.Errorf("with the daemon %s\nwithout %s", locked, outside)
	}
}

// TestDaemon_LockAsks: mcpx lock in the daemon asks at the terminal of its command.
func TestDaemon_LockAsks(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	h.run(t, "", "--config", config, "exec", "fake", "pid")
	if out, stderr, code := h.run(t, "", "--config", config, "lock"); code != exitFailed || !strings.Contains(stderr, "run: mcpx lock --yes --config "+config) {
		t.Errorf("without a terminal: exit %d, %s%s", code, out, stderr)
	}
	typist, screen := pseudoTerminal(t)
	if _, err := typist.WriteString("y\n"); err != nil {
		t.Fatal(err)
	}
	cmd := h.command(t, "--config", config, "lock")
	cmd.Stdin = screen
	out, err := cmd.CombinedOutput()
	if _, missing := os.Stat(filepath.Join(h.dir, "mcpx.lock.json")); err != nil || missing != nil || !strings.Contains(string(out), "[y/N]") {
		t.Errorf("%v: %s", err, out)
	}
}
