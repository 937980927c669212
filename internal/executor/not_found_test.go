package executor

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
)

// A call without a server is told who has the tool, where few have.
func TestMissingServer(t *testing.T) {
	mcptest.NoLeaks(t)
	tools := func(names ...string) mcptest.Spec {
		return mcptest.Spec{Tools: json.RawMessage(`[{"name":"` + strings.Join(names, `"},{"name":"`) + `"}]`)}
	}
	var servers []registry.Server
	for name, spec := range map[string]mcptest.Spec{
		"alpha": tools("common", "pair", "only"), "bravo": tools("common", "pair"), "charlie": tools("common"), "delta": tools("common", "l"+strings.Repeat("_", 5000)+"ong", strings.Repeat("x", 5000)),
	} {
		servers = append(servers, piped(t, name, spec))
	}
	e := executing(t, Options{}, nil, servers...)
	for tool, want := range map[string]string{
		"only":   "VALIDATION_ERROR: /server_name: is missing; server alpha has only",
		"ONLY":   "VALIDATION_ERROR: /server_name: is missing; server alpha has only",
		"pair":   "VALIDATION_ERROR: /server_name: is missing; servers alpha, bravo have pair",
		"common": "",
		"nobody": "",
		"long":   "",

		strings.Repeat("x", 5000): "",

		"":            "",
		"read_result": "VALIDATION_ERROR: /server_name: is missing; server mcpx has read_result",
	} {
		failure := e.MissingServer(e.Catalogue(nil), tool)
		if failure == nil && want == "" {
			continue
		}
		if failure == nil || textOf(t, failure.Result(true).Content[0]) != want {
			t.Errorf("%s: got %+v, want %s", tool, failure, want)
		}
	}
	seen, alpha, _ := e.FindServer(t.Context(), nil, nil, e.Catalogue(nil), "alpha", "")
	if _, _, failure := e.FindServer(t.Context(), nil, nil, seen, "zzz", "only"); failure == nil || failure.Text != `SERVER_NOT_FOUND: no server "zzz". Server alpha has only.` {
		t.Errorf("got %+v", failure)
	}
	if failure := e.ToolNotFound(seen, alpha, "read_result"); failure.Text != `TOOL_NOT_FOUND: no tool "read_result" on server "alpha". Server mcpx has read_result.` {
		t.Errorf("got %+v", failure)
	}
}

// A name written as "server.tool", in either place, gets the right server and tool.
func TestNotFound_Dotted(t *testing.T) {
	mcptest.NoLeaks(t)
	tools := func(names ...string) mcptest.Spec {
		return mcptest.Spec{Tools: json.RawMessage(`[{"name":"` + strings.Join(names, `"},{"name":"`) + `"}]`)}
	}
	e := executing(t, Options{}, nil, piped(t, "time", tools("get_current_time", "get_current", "a", "a_b", "whole.name")), piped(t, "time.zone", tools("find")), piped(t, "whole", tools("other", "name")))
	for _, tt := range []struct{ server, tool, want string }{
		{"time", "time.get_current_time", `TOOL_NOT_FOUND: no tool "time.get_current_time" on server "time". Did you mean get_current_time? Available: `},
		{"time", "time.a", `TOOL_NOT_FOUND: no tool "time.a" on server "time". Did you mean a? Available: `},
		{"whole", "time.a", `TOOL_NOT_FOUND: no tool "time.a" on server "whole". Server time has a.`},
		{"nobody", "time.a", `SERVER_NOT_FOUND: no server "nobody". Server time has a.`},
		{"nobody", "whole.name", `SERVER_NOT_FOUND: no server "nobody". Server time has whole.name.`},
		{"nobody", "time.zone.find", `SERVER_NOT_FOUND: no server "nobody". Server time.zone has find.`},
		{"nobody", "mcpx.read_result", `SERVER_NOT_FOUND: no server "nobody". Server mcpx has read_result.`},
		{"nobody", "time.none", `SERVER_NOT_FOUND: no server "nobody". Available: `},
		{"time.a", "a", `SERVER_NOT_FOUND: no server "time.a". Server time has a.`},
		{"time.get_current_time", "x", `SERVER_NOT_FOUND: no server "time.get_current_time". Server time has get_current_time.`},
		{"time.get_current_time", "", `SERVER_NOT_FOUND: no server "time.get_current_time". Server time has get_current_time.`},
	} {
		got := exec(t, e, Request{Server: tt.server, Tool: tt.tool, Form: always})
		if text := textOf(t, got.Content[0]); !strings.HasPrefix(text, tt.want) {
			t.Errorf("%s, %s: got %s, want %s", tt.server, tt.tool, text, tt.want)
		}
	}
	const missing = "VALIDATION_ERROR: /server_name: is missing; server time has get_current_time"
	if got := e.MissingServer(e.Catalogue(nil), "time.get_current_time"); got == nil || got.text() != missing {
		t.Errorf("got %+v", got)
	}
}

// Names are foreign text: few long ones are listed.
func TestNotFound_LongNames(t *testing.T) {
	known := []string{"short", strings.Repeat("x", maxListedBytes), strings.Repeat("y", 1<<20)}
	f := (&notFoundError{what: "tool", server: "s", name: "z", known: known}).failure()
	if len(f.Text) > 300 || !strings.Contains(f.Text, "Available: short and 2 more") {
		t.Errorf("got %.400s", f.Text)
	}
	if f = (&notFoundError{what: "tool", server: "s", name: "xxx", known: known}).failure(); len(f.Text) > 300 {
		t.Errorf("got %d bytes: %.400s", len(f.Text), f.Text)
	}
}
