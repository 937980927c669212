package main

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestFromDisk: inspect and budget read the catalogues that an earlier mcpx has stored on disk, and start no
// server. A server is started if its catalogue is missing, or if its definition in the config has changed.
func TestFromDisk(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	spec, other := mcptest.Spec{}.WithFiles(t), mcptest.Spec{}.WithFiles(t)
	servers := map[string]server{"one": fake(t, spec), "two": fake(t, other)}
	path := h.config(t, servers, nil)
	run := func(want string, starts, others int, args ...string) {
		t.Helper()
		out, stderr, _ := h.run(t, "", append([]string{"--config", path}, args...)...)
		if !strings.Contains(out+stderr, want) {
			t.Errorf("%q: no %q in\n%s%s", args, want, out, stderr)
		}
		if n := len(spec.Log(t).Event(mcptest.EventStart)); n != starts {
			t.Errorf("%q: one was started %d times, want %d", args, n, starts)
		}
		if n := len(other.Log(t).Event(mcptest.EventStart)); n != others {
			t.Errorf("%q: two was started %d times, want %d", args, n, others)
		}
	}
	run("echo(", 1, 0, "inspect", "one", "echo") // no catalogue is on disk yet
	run("echo(", 1, 0, "inspect", "one", "echo")
	run("echo(", 1, 0, "inspect", "one")
	run("two", 1, 1, "budget", "--all")
	run("two", 1, 1, "budget", "--all")
	run("add(", 1, 1, "inspect", "--query", "add two numbers")
	run("echo(", 1, 1, "inspect")
	run("1 ready", 2, 1, "check", "one")

	// To find out whether a tool that is not on disk exists, mcpx must start the server.
	run("TOOL_NOT_FOUND", 3, 1, "inspect", "one", "nothing")
	run("hello", 4, 1, "exec", "one", "echo", "text=hello")

	// With a changed definition the catalogue on disk is not used.
	servers["two"]["env"].(map[string]string)["MORE"] = "1"
	h.config(t, servers, nil)
	run("echo(", 4, 2, "inspect", "two", "echo")
	run("echo(", 4, 2, "inspect", "two", "echo")

	// The demo's servers run in its own process; the demo ignores the config.
	run("30 tools", 4, 2, "demo")
}

// TestFromDisk_Newer: mcpx finds a tool that the server has added after its catalogue was stored.
func TestFromDisk_Newer(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	old := mcptest.Spec{Tools: json.RawMessage(`[{"name":"old","inputSchema":{"type":"object"}}]`)}.HTTP(t)
	path := h.config(t, map[string]server{"one": {"url": old.URL}}, nil)
	hasAll(t, h.must(t, 0, "--config", path, "inspect", "one", "old"), "old(")
	old.SetTools(json.RawMessage(`[{"name":"old","inputSchema":{"type":"object"}},{"name":"young","inputSchema":{"type":"object"}}]`))
	hasAll(t, h.must(t, 0, "--config", path, "inspect", "one", "young"), "young(")
	hasAll(t, h.must(t, 0, "--config", path, "inspect", "one", "old,young"), "old(", "young(")
}
