package view

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/request"
)

// TestInspect_Seen: inspect says what the results of an undeclared tool were as soon as a call has shown it, to the caller's own
// principal alone.
func TestInspect_Seen(t *testing.T) {
	mcptest.NoLeaks(t)
	text := func(s string) json.RawMessage {
		return json.RawMessage(`{"content":[` + string(wire.TextBlock(s)) + `]}`)
	}
	spec := recorded(t, "modelcontextprotocol__server-github")
	spec.Results = map[string]json.RawMessage{
		"list_issues":       text("[\n  {\"number\": 1}\n]"),
		"get_file_contents": text("{not JSON}"),
		"search_users":      text("[{'login': 'ann', 'since': None}]"), // as Python prints it
		"get_issue":         json.RawMessage(`{"content":[` + string(wire.TextBlock("{}")) + `],"isError":true}`),
		"create_branch":     text("42"),
	}
	r := registry.New([]registry.Server{remote("github", spec.HTTP(t))}, registry.Options{})
	v := NewTwoTools(r, chained(r, executor.Options{TOON: true, TypeScript: true}), Options{})
	t.Cleanup(func() { v.Close(); r.Close(patience) })
	r.Start()
	r.WaitTried(t.Context())
	one, other := &caller.Client{Principal: &caller.Principal{ID: "one"}}, &caller.Client{Principal: &caller.Principal{ID: "other"}}
	call := func(tool, arguments string) {
		t.Helper()
		if _, err := v.Call(t.Context(), Call{From: request.From{Client: one}, Name: ExecTool, Arguments: json.RawMessage(
			`{"server_name":"github","tool_name":"` + tool + `","arguments":` + arguments + `}`)}); err != nil {
			t.Fatal(err)
		}
	}
	before := asked(t, v, one, Query{Server: "github", Tool: "list_issues"})
	for range 2 {
		call("list_issues", `{"owner":"a","repo":"b"}`)
	}
	call("get_file_contents", `{"owner":"a","repo":"b","path":"c"}`)
	call("search_users", `{"q":"a"}`)
	call("get_issue", `{"owner":"a","repo":"b","issue_number":1}`)
	call("create_branch", `{"owner":"a","repo":"b","branch":"c"}`)
	for tool, want := range map[string]string{
		"list_issues": "\n// seen: JSON", "get_file_contents": "\n// seen: text", "search_users": "\n// seen: JSON",
		"get_issue": "", "create_branch": "\n// seen: text", "fork_repository": "",
	} {
		got := asked(t, v, one, Query{Server: "github", Tool: tool})
		if !strings.HasSuffix(got, want) || want == "" && strings.Contains(got, "seen:") {
			t.Errorf("%s: got %q, want %q at its end", tool, got, want)
		}
	}
	if got := asked(t, v, other, Query{Server: "github", Tool: "list_issues"}); got != before {
		t.Errorf("another principal: got %q, want %q", got, before)
	}
	if got := asked(t, v, one, Query{Text: "github issues list, list_issues"}); !strings.Contains(got, "// seen: JSON") {
		t.Errorf("a query: %s", got)
	}
}
