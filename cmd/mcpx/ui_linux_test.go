package main

import (
	"net/http"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestUI_Daemon: the daemon has one page, which shows and restarts the servers of all sessions, and ends with the daemon.
func TestUI_Daemon(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{}), "shared": fake(t, mcptest.Spec{})}, map[string]any{"daemon_idle": 1})
	text := strings.Replace(readFile(t, config), `"shared": {`, `"shared": {"share": "user",`, 1)
	h.write(t, "mcpx.json", text)
	var sessions [2]*client
	var pids [2]string
	for i := range sessions {
		sessions[i] = &client{peer: h.serveStdio(t, "--config", config), era: legacy, name: "agent"}
		sessions[i].open(t)
		pids[i] = sessions[i].exec(t, "fake", "pid", `{}`).text(t)
	}
	shared := sessions[0].exec(t, "shared", "pid", `{}`).text(t)
	v := signIn(t, h.must(t, 0, "--config", config, "ui", "--no-browser"))
	again := signIn(t, h.must(t, 0, "--config", config, "ui", "--no-browser"))
	if v.site != again.site {
		t.Errorf("two pages: %s and %s", v.site, again.site)
	}
	if found := v.server(t, "fake"); found.Sessions != 2 || !found.Running {
		t.Errorf("got %+v", found)
	}
	calls := v.ask(t, 200, "GET", "calls", nil)
	if n := strings.Count(calls, `"client":"agent"`); n != 3 {
		t.Errorf("%d calls: %s", n, calls)
	}
	hasAll(t, h.must(t, 0, "--config", config, "status"), "The page is open at "+v.site)
	v.ask(t, 200, "POST", "servers/fake/restart", nil)
	v.ask(t, 200, "POST", "servers/shared/restart", nil)
	for i, c := range sessions {
		if pid := c.exec(t, "fake", "pid", `{}`).text(t); pid == pids[i] {
			t.Errorf("session %d has the same process of fake", i)
		}
		if pid := c.exec(t, "shared", "pid", `{}`).text(t); pid == shared {
			t.Errorf("session %d has the same process of shared", i)
		}
	}
	v.ask(t, 200, "POST", "servers/fake/disable", nil)
	hasAll(t, readFile(t, config), `"enabled": false`)
	mcptest.WaitFor(t, "the reload in the sessions", patience, func() bool { return v.server(t, "fake").Sessions == 0 })
	h.must(t, 0, "--config", config, "stop")
	if response, err := http.Get(v.site); err == nil {
		response.Body.Close()
		t.Error("the page is there after the end of the daemon")
	}
}
