package view

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/tokens"
)

// recorded returns a fake with the recorded answer of a real server to tools/list.
func recorded(t *testing.T, server string) mcptest.Spec {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "schemats", "testdata", "tools", server+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return mcptest.Spec{Tools: wire.Member(data, "tools")}
}

// asked returns the text of inspect's answer to a client.
func asked(t *testing.T, v *TwoTools, client *caller.Client, q Query) string {
	t.Helper()
	result, err := v.Call(t.Context(), Call{From: request.From{Client: client}, Name: InspectTool, Arguments: wire.Encode(map[string]string{
		"server_name": q.Server, "tool_name": q.Tool, "query": q.Text,
	})})
	if err != nil || result.IsError {
		t.Fatal(result, err)
	}
	return wire.ReadBlock(result.Content[0]).Text
}

// TestInspect_ExactNames: a query that consists of tool names is answered with exactly these tools. One client may see all
// tools of a server, the other one only some.
func TestInspect_ExactNames(t *testing.T) {
	mcptest.NoLeaks(t)
	rules := &policy.Rules{Rights: policy.NewRights([]conf.Right{
		{Principals: []string{"all"}},
		{Principals: []string{"some"}, Allow: []string{"github.*", "memory.read_graph"}},
	}, nil)}
	r := registry.New([]registry.Server{
		remote("github", recorded(t, "modelcontextprotocol__server-github").HTTP(t)),
		remote("memory", recorded(t, "modelcontextprotocol__server-memory").HTTP(t)),
		remote("browser", recorded(t, "playwright__mcp").HTTP(t)),
	}, registry.Options{Rules: rules})
	v := NewTwoTools(r, chained(r, executor.Options{TOON: true, TypeScript: true}), Options{})
	t.Cleanup(func() { v.Close(); r.Close(patience) })
	r.Start()
	r.WaitTried(t.Context())
	all, some := &caller.Client{Principal: &caller.Principal{ID: "all", Name: "all"}}, &caller.Client{Principal: &caller.Principal{ID: "some", Name: "some"}}

	eleven := strings.Fields("create_issue read_graph search_nodes list_issues get_issue browser_click browser_snapshot create_pull_request open_nodes merge_pull_request search_code")
	named := func(text string) (names []string) {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			apart := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "type Args") // not all of the tool's arguments are identifiers
			if apart || strings.Contains(line, " // JSON Schema: ") {
				line, _, _ = strings.Cut(line, " //")
				line += "("
			}
			line = strings.Replace(line, ": {", "(", 1)
			if name, _, ok := strings.Cut(line, "("); ok && !strings.HasPrefix(line, " ") && !strings.ContainsAny(name, " /{") {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	want := slices.Sorted(slices.Values(eleven))
	for _, query := range []string{strings.Join(eleven, ", "), strings.Join(eleven, " "), "github." + strings.Join(eleven, "\n")} {
		text := asked(t, v, all, Query{Text: query})
		if got := named(text); !slices.Equal(got, want) || strings.Contains(text, "types only") {
			t.Errorf("%s: got %v\n%s", query, got, text)
		}
		if n := tokens.Count(text); n > 6000 {
			t.Errorf("%s: %d tokens", query, n)
		}
	}
	// For the other client, the tools that it may not see do not exist.
	text := asked(t, v, some, Query{Text: strings.Join(eleven, ",")})
	if got := named(text); !slices.Equal(got, strings.Fields("create_issue create_pull_request get_issue list_issues merge_pull_request read_graph search_code")) {
		t.Errorf("got %v", got)
	}
	if line := `// no tool is named "search_nodes", "browser_click", "browser_snapshot", "open_nodes"`; !strings.HasSuffix(text, line) {
		t.Errorf("no %s in\n%s", line, text)
	}
	// The answer for a single name is the description of the tool, and one line with its server.
	alone := asked(t, v, all, Query{Server: "github", Tool: "create_issue"})
	if got := asked(t, v, all, Query{Text: "create_issue"}); got != "// server_name: github\n"+alone {
		t.Errorf("got %s", got)
	}
	// All tools of two servers fit into one answer within the limit.
	var every []string
	snap := v.catalogue(all)
	for _, name := range []string{"github", "browser"} {
		s, _ := snap.Server(name)
		every = append(every, s.ToolNames()...)
	}
	text = asked(t, v, all, Query{Text: strings.Join(every, ",")})
	if got := named(text); len(got) != len(every) || tokens.Count(text) > 6000 {
		t.Errorf("%d of %d tools in %d tokens", len(got), len(every), tokens.Count(text))
	}
	if text := asked(t, v, all, Query{Server: "memory", Tool: "read_graph,create_issue,open_nodes"}); !slices.Equal(named(text), []string{"open_nodes", "read_graph"}) ||
		!strings.HasSuffix(text, "\n// TOOL_NOT_FOUND: no tool \"create_issue\" on server \"memory\". Server github has create_issue.") {
		t.Errorf("got %s", text)
	}
}

// TestInspect_ManyUnknownNames: a query with many unknown names takes no more time than other queries.
func TestInspect_ManyUnknownNames(t *testing.T) {
	v, r := started(t, Options{}, remote("github", recorded(t, "modelcontextprotocol__server-github").HTTP(t)))
	r.WaitTried(t.Context())
	var names []string
	for i := range 2000 {
		names = append(names, "no_"+string(rune('a'+i%26))+strings.Repeat("x", i%7)+string(json.RawMessage(wire.Encode(i))))
	}
	for _, q := range []Query{{Server: "github", Tool: "get_issue," + strings.Join(names, ",")}, {Text: "get_issue," + strings.Join(names[:400], ",")[:4000]}} {
		if text := asked(t, v, nil, q); len(text) > 3000 || !strings.Contains(text, "get_issue(") {
			t.Errorf("%d bytes: %.500s", len(text), text)
		}
	}
}

// TestInspect_NothingFits: if no tool fits a query, the answer is one line and a few names. If a tool fits, the names of
// further tools are at the end of the answer.
func TestInspect_NothingFits(t *testing.T) {
	v, r := started(t, Options{}, remote("github", recorded(t, "modelcontextprotocol__server-github").HTTP(t)), remote("browser", recorded(t, "playwright__mcp").HTTP(t)))
	r.WaitTried(t.Context())
	const need = "violin trumpet saxophone orchestra page"
	text := asked(t, v, nil, Query{Text: need})
	if !strings.HasPrefix(text, `// Nothing fits "`+need+`" well. The nearest, names only:`+"\n") || strings.Contains(text, "(") || tokens.Count(text) > 150 {
		t.Errorf("%d tokens: %s", tokens.Count(text), text)
	}
	hostile := asked(t, v, nil, Query{Text: need + "\rviola" + strings.Repeat("x", 3000)})
	if len(hostile) > 1500 || strings.Contains(hostile, "\r") {
		t.Errorf("got %s", hostile)
	}
	if text := asked(t, v, nil, Query{Text: "violin"}); !strings.HasPrefix(text, "No tool matches") {
		t.Errorf("got %s", text)
	}
	text = asked(t, v, nil, Query{Text: "list the issues of a repository"})
	at := strings.Index(text, "\n// more, names only:\n")
	if at < 0 || !strings.Contains(text[at:], "github: ") {
		t.Errorf("got %s", text)
	}
}
