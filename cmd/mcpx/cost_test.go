package main

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestCheck_Cost: mcpx check and mcpx init print in one line what the servers on this machine cost, and what
// the setting lazy would save. Servers that another mcpx has started are not included.
func TestCheck_Cost(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	servers := map[string]server{
		"one": fake(t, mcptest.Spec{ForkGrandchild: true}), "two": fake(t, mcptest.Spec{}), "remote": {"url": mcptest.Spec{}.HTTP(t).URL}, "down": {"command": "no-such-program"},
	}
	path := h.config(t, servers, nil)
	other := &client{peer: h.serveStdio(t, "--config", path), era: legacy, name: "e2e"}
	other.open(t)
	other.tool(t, "exec", `{"server_name":"two","tool_name":"echo","arguments":{"text":"x"}}`)

	line := func(out string) string {
		t.Helper()
		for line := range strings.SplitSeq(out, "\n\n") {
			if _, line, ok := strings.Cut(line, "servers of this machine "); ok {
				return strings.Join(strings.Fields(line), " ")
			}
		}
		t.Errorf("no line in\n%s", out)
		return ""
	}
	got := line(h.must(t, exitFailed, "check", "--config", path))
	if runtime.GOOS == "linux" && !strings.HasPrefix(got, "take 3 processes and ") {
		t.Errorf("got %s", got)
	}
	hasAll(t, got, `for each client that starts mcpx; with "start": "lazy" in the config none before the first call, which then waits for its server (here at most `)
	var outcome struct{ Cost *cost }
	out, _, _ := h.run(t, "", "check", "--json", "--config", path)
	if err := json.Unmarshal([]byte(out), &outcome); err != nil || outcome.Cost == nil || outcome.Cost.Servers != 2 {
		t.Errorf("%v in %s", err, out)
	}
	if c := outcome.Cost; runtime.GOOS == "linux" && (c.Processes != 3 || c.MemoryBytes < 1e6 || c.MemoryBytes > 2e9) {
		t.Errorf("got %+v", c)
	}

	servers["one"]["start"] = "lazy"
	hasAll(t, line(h.must(t, exitFailed, "check", "--config", h.config(t, servers, nil))), `but for 1 that start with the first call ("start": "lazy")`)
	hasAll(t, line(h.must(t, exitFailed, "check", "--config", h.config(t, map[string]server{"one": servers["one"], "two": servers["two"], "down": servers["down"]}, map[string]any{"start": "lazy"}))),
		`from the first call on only ("start": "lazy")`)
	if out := h.must(t, 0, "check", "--config", h.config(t, map[string]server{"remote": servers["remote"]}, nil)); strings.Contains(out, "machine") {
		t.Errorf("got %s", out)
	}
	h.write(t, ".cursor/mcp.json", `{"mcpServers": {"one": `+fakeEntry(t)+`, "two": `+fakeEntry(t)+`}}`)
	line(h.must(t, 0, "init", "--yes"))
}

// TestInit_Ends: at its end, init prints which servers work and which do not, and what the user can do about these. It also
// prints how often the daemon runs each server, and how many tokens the definitions have. check prints the costs too.
func TestInit_Ends(t *testing.T) {
	mcptest.Parallel(t)
	if runtime.GOOS == "windows" {
		t.Skip("there is no daemon")
	}
	h := newHome(t)
	h.daemon = true // neither command starts the daemon
	servers := map[string]server{"own": fake(t, mcptest.Spec{}), "all": fake(t, mcptest.Spec{}), "folder": fake(t, mcptest.Spec{})}
	servers["all"]["share"], servers["folder"]["share"], servers["folder"]["start"] = "user", "folder", "lazy"
	path := h.config(t, servers, nil)
	from := h.write(t, "some.json", `{"mcpServers": {"down": {"command": "no-such-program"}}}`)
	out := h.must(t, 0, "init", "--yes", "--from", from, "--config", path)
	_, end, ok := strings.Cut(out, "other clients: mcpx connect")
	if !ok {
		_, end, _ = strings.Cut(out, "now connect a client")
	}
	want := []string{"4 servers: ", "3 ready", "1 unavailable", "  down is unavailable: ", "no-such-program",
		"    try it again: mcpx check down --config " + path + "; or leave it out: mcpx disable down --config " + path + "\n",
		"3 servers of this machine", ", if all of them run:\n",
		"  once for all sessions, from the first one on: all", "  once for the sessions of each folder, from its first call on: folder",
		"  once for each session, from its first call on: own", "tool definitions in every request: ", " tokens directly, ", " through mcpx (-"}
	if runtime.GOOS == "linux" {
		want = append(want, "take 3 processes and ", "on: own (1 process and ")
	}
	hasAll(t, end, want...)
	var outcome struct {
		Cost        *cost
		Definitions *definitions
	}
	text, _, _ := h.run(t, "", "check", "--json", "--config", path)
	if err := json.Unmarshal([]byte(text), &outcome); err != nil || outcome.Cost == nil || len(outcome.Cost.Often) != 3 || outcome.Definitions != nil {
		t.Errorf("%v in %s", err, text)
	}
}
