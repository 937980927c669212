package view

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
	"mcpx/internal/describe"
	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/request"
)

// TestHiddenTools: a tool that is hidden does not exist for a client, whichever method it uses.
func TestHiddenTools(t *testing.T) {
	mcptest.NoLeaks(t)
	const word = "zeppelin"
	fake := func(tools string) *mcptest.HTTPServer { return mcptest.Spec{Tools: json.RawMessage(tools)}.HTTP(t) }
	books := remote("books", fake(`[{"name":"find_book","description":"Finds a book."},
		{"name":"`+word+`_delete","title":"`+word+`","description":"Deletes with the `+word+`.","inputSchema":{"type":"object","required":["`+word+`_id"]}},
		{"name":"`+word+`_app","description":"For the app of the `+word+`.","_meta":{"ui":{"visibility":["app"]}}}]`))
	locked := remote("locked", fake(`[{"name":"`+word+`_write"}]`))
	rules := &policy.Rules{
		Servers:  map[string]policy.ServerRules{"locked": {ReadOnly: true}},
		Disabled: []string{"books." + word + "_d*"},
	}
	r := registry.New([]registry.Server{books, locked}, registry.Options{Rules: rules})
	e := chained(r, executor.Options{TOON: true, TypeScript: true, ExecWait: patience})
	v := NewTwoTools(r, e, Options{})
	r.Start()
	defer func() {
		v.Close()
		r.Close(time.Second)
	}()
	r.WaitTried(t.Context())

	client := &caller.Client{ID: "c", Name: "some-agent"}
	ask := func(tool, arguments string) string {
		result, err := v.Call(t.Context(), Call{From: request.From{Client: client}, Name: tool, Arguments: json.RawMessage(arguments), Structured: StructuredAlways})
		if err != nil {
			t.Fatalf("%s %s: %v", tool, arguments, err)
		}
		said := string(result.Structured)
		for _, block := range result.Content {
			said += "\n" + string(block)
		}
		return said
	}
	_, unknown := v.Call(t.Context(), Call{From: request.From{Client: client}, Name: word + "_delete"})
	if notOurs := (*UnknownToolError)(nil); !errors.As(unknown, &notOurs) {
		t.Fatalf("its name as a tool of mcpx: %v", unknown)
	}
	// Each answer must contain a word that shows that the request was processed. In some answers, the hidden name that the
	// client itself sent is removed first.
	for name, way := range map[string]struct{ said, want string }{
		"tools/list":            {string(v.Tools(t.Context(), client)), "find_book"},
		"instructions":          {v.Instructions(client), "books"},
		"the description":       {v.Description(), "find_book"},
		"all servers":           {ask("inspect", `{}`), "books"},
		"its server":            {ask("inspect", `{"server_name":"books"}`), "find_book"},
		"a query":               {ask("inspect", `{"query":"book `+word+`"}`), "find_book"},
		"a query of its words":  {strings.ReplaceAll(ask("inspect", `{"query":"`+word+` delete"}`), `\"`+word+" delete", ""), "No tool matches"},
		"the tool":              {strings.ReplaceAll(ask("inspect", `{"server_name":"books","tool_name":"`+word+`_delete"}`), `\"`+word+`_delete\"`, ""), "TOOL_NOT_FOUND"},
		"a call":                {strings.ReplaceAll(ask("exec", `{"server_name":"books","tool_name":"`+word+`_delete"}`), `\"`+word+`_delete\"`, ""), "TOOL_NOT_FOUND"},
		"a call of the app's":   {strings.ReplaceAll(ask("exec", `{"server_name":"books","tool_name":"`+word+`_app"}`), `\"`+word+`_app\"`, ""), "TOOL_NOT_FOUND"},
		"a call of one near it": {ask("exec", `{"server_name":"books","tool_name":"zepelin_delete"}`), "TOOL_NOT_FOUND"},
		"of another server":     {ask("exec", `{"server_name":"locked","tool_name":"zepelin_delete"}`), "TOOL_NOT_FOUND"},
		"without a server":      {ask("exec", `{"tool_name":"zeppelinDelete"}`), "is missing"},
		"inspected without one": {ask("inspect", `{"tool_name":"zeppelinDelete"}`), "is missing"},
		"with its server":       {strings.ReplaceAll(ask("exec", `{"tool_name":"books.`+word+`_delete"}`), `\"books.`+word+`_delete\"`, ""), "is missing"},
		"in place of a server":  {strings.ReplaceAll(ask("exec", `{"server_name":"books.`+word+`_delete"}`), `\"books.`+word+`_delete\"`, ""), "is missing"},
		"as a tool of mcpx":     {strings.ReplaceAll(unknown.Error(), `"`+word+`_delete"`, ""), "only inspect and exec"},
	} {
		if strings.Contains(strings.ToLower(way.said), word) && !strings.Contains(way.said, "zeppelinDelete") || strings.Contains(way.said, word+"_") || !strings.Contains(way.said, way.want) {
			t.Errorf("%s: want %q, and no %s in %s", name, way.want, word, way.said)
		}
	}
	if raw, failure := e.Raw(context.Background(), executor.Request{Server: "books", Tool: word + "_delete"}); raw != nil || failure == nil {
		t.Errorf("raw: %s", raw)
	}
	// If all tools of a server are hidden, inspect says why.
	for _, arguments := range []string{`{}`, `{"server_name":"locked"}`} {
		if said := ask("inspect", arguments); !strings.Contains(said, "its only tool is hidden by read_only") {
			t.Errorf("inspect %s: %s", arguments, said)
		}
	}
}

// TestInspect_QueryWaits: a query that arrives while servers connect for the first time is answered with the tools of these
// servers.
func TestInspect_QueryWaits(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, arguments := range []string{`{"server_name":"slow","query":"echo"}`, `{"query":"answer a text"}`, `{"query":"echo"}`, `{"query":"slow.echo, fast.echo"}`} {
		v, _ := started(t, Options{StartupWait: patience}, remote("slow", mcptest.Spec{ListDelay: 200 * time.Millisecond}.HTTP(t)))
		result, err := v.Call(t.Context(), Call{Name: "inspect", Arguments: json.RawMessage(arguments)})
		if err != nil || !strings.Contains(string(result.Content[0]), "echo(") {
			t.Errorf("%s: got %s, %v", arguments, result.Content, err)
		}
	}
}

// TestInspect_QueryWaitsInVain: the answer to a search begins with the servers that could not be searched yet. Only one query
// waits for a server that does not answer. A query of a client that may not see the server does not wait for it.
func TestInspect_QueryWaitsInVain(t *testing.T) {
	rules := &policy.Rules{Rights: policy.NewRights([]conf.Right{{Principals: []string{"all"}}, {Principals: []string{"some"}, Allow: []string{"fake.*"}}}, nil)}
	r := registry.New([]registry.Server{remote("fake", mcptest.Spec{}.HTTP(t)), remote("hung", mcptest.Spec{ListDelay: patience}.HTTP(t))}, registry.Options{Rules: rules})
	var wait atomic.Pointer[Settings]
	wait.Store(NewSettings(Options{StartupWait: patience}))
	v := NewTwoTools(r, chained(r, executor.Options{TypeScript: true}), Options{Current: wait.Load})
	t.Cleanup(func() { v.Close(); r.Close(time.Second) })
	r.Start()
	r.WaitServer(t.Context(), "fake")
	all, some := &caller.Client{Principal: &caller.Principal{ID: "all", Name: "all"}}, &caller.Client{Principal: &caller.Principal{ID: "some", Name: "some"}}
	if text := asked(t, v, some, Query{Text: "zzz"}); !strings.HasPrefix(text, "No tool matches") {
		t.Errorf("got %s", text)
	}
	if text := asked(t, v, all, Query{Text: "add, fake.echo"}); !strings.Contains(text, "echo(") || strings.Contains(text, "hung") {
		t.Errorf("known names alone: got %s", text)
	}
	wait.Store(NewSettings(Options{StartupWait: 50 * time.Millisecond}))
	if text := asked(t, v, all, Query{Text: "zzz"}); !strings.HasPrefix(text, "// not searched yet: hung (connecting)\nNo tool matches") {
		t.Errorf("got %s", text)
	}
	wait.Store(NewSettings(Options{StartupWait: patience}))
	if text := asked(t, v, all, Query{Text: "answer a text"}); !strings.HasPrefix(text, "// not searched yet: hung (connecting)\n// server_name: fake\n") {
		t.Errorf("got %s", text)
	}
	if text := v.texts.list(v.catalogue(all), shown{budget: describe.Budget{Tokens: 60}}).inspect; !strings.Contains(text, "hung (?)") {
		t.Errorf("a large catalogue: %s", text)
	}
}
