package view

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/tokens"
)

// TestSaved: a tools/list saves the tokens of the definitions of all tools that the client may see, less the tokens of mcpx's own
// definitions. For a client that searches for tools itself, it saves only the lines that such a client shows its model about the
// tools. The tokens of an answer of inspect are subtracted.
func TestSaved(t *testing.T) {
	mcptest.NoLeaks(t)
	definition := func(name string) string {
		return `{"name":"` + name + `","description":"Does ` + strings.Repeat(name+" again ", 50) + `","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`
	}
	fake := mcptest.Spec{Tools: json.RawMessage(`[` + definition("one") + `,` + definition("two") + `,` + definition("hidden") + `]`)}
	books := remote("books", fake.HTTP(t))
	off := remote("off", fake.HTTP(t))
	off.Disabled = true
	r := registry.New([]registry.Server{books, off, remote("notes", mcptest.Spec{Tools: json.RawMessage(`[` + definition("three") + `]`), Instructions: "Notes."}.HTTP(t))},
		registry.Options{Rules: &policy.Rules{Disabled: []string{"books.hidden"}}})
	v := NewTwoTools(r, chained(r, executor.Options{}), Options{Clients: []ClientRule{{Name: "claude-code-plain", DescriptionChars: 3000}}})
	r.Start()
	defer func() {
		v.Close()
		r.Close(time.Second)
	}()
	r.WaitTried(t.Context())

	own := func(client *caller.Client) (sum int) {
		var tools []Definition
		if err := json.Unmarshal(v.Tools(t.Context(), client), &tools); err != nil || len(tools) != 2 {
			t.Fatalf("%v, %v", tools, err)
		}
		for _, tool := range tools {
			sum += tokens.Estimate(string(wire.Encode(tool)))
		}
		return sum
	}
	whole := func(names ...string) (sum int) {
		for _, name := range names {
			sum += tokens.Estimate(definition(name))
		}
		return sum
	}
	for name, want := range map[string]func(own int) []request.Saving{
		"some-agent": func(own int) []request.Saving {
			return []request.Saving{{Server: "books", Tokens: whole("one", "two")}, {Server: "notes", Tokens: whole("three")}, {Server: "mcpx", Tokens: -own}}
		},
		"claude-code-plain": func(own int) []request.Saving { // the config says that its search is off
			return []request.Saving{{Server: "books", Tokens: whole("one", "two")}, {Server: "notes", Tokens: whole("three")}, {Server: "mcpx", Tokens: -own}}
		},
		"claude-code": func(own int) []request.Saving {
			return []request.Saving{
				{Server: "books", Tokens: tokens.Estimate("\nmcp__books__one\nmcp__books__two")}, {Server: "notes", Tokens: tokens.Estimate("Notes.\nmcp__notes__three")},
				{Server: "mcpx", Tokens: -own - tokens.Estimate(v.Instructions(&caller.Client{Name: "claude-code"}))},
			}
		},
		"codex-mcp-client": func(int) []request.Saving {
			first, _, _ := strings.Cut(v.Instructions(&caller.Client{Name: "codex-mcp-client"}), "\n")
			return []request.Saving{
				{Server: "books", Tokens: tokens.Estimate("- mcp__books")}, {Server: "notes", Tokens: tokens.Estimate("- mcp__notes: Notes.")},
				{Server: "mcpx", Tokens: -tokens.Estimate("- mcp__mcpx: " + first)},
			}
		},
	} {
		client := &caller.Client{Name: name}
		saved := v.Saved(client)()
		if want := want(own(client)); !slices.Equal(saved, want) {
			t.Errorf("%s: %+v, want %+v", name, saved, want)
		}
		event := &request.Event{}
		answer, err := v.Call(t.Context(), Call{From: request.From{Client: client, Event: event}, Name: InspectTool, Arguments: json.RawMessage(`{"server_name":"books","tool_name":"one"}`)})
		if err != nil {
			t.Fatal(err)
		}
		searches := name == "claude-code" || name == "codex-mcp-client"
		if searches != (event.Definitions == nil) {
			t.Errorf("%s: a look-up counts %t", name, event.Definitions != nil)
		}
		if searches {
			continue
		}
		spent := -tokens.Estimate(wire.ReadBlock(answer.Content[0]).Text)
		if got := event.Definitions(); !slices.Equal(got, []request.Saving{{Server: "mcpx", Tool: "inspect", Tokens: spent}}) || spent == 0 {
			t.Errorf("%s: a look-up counts %+v, want %d", name, got, spent)
		}
	}
	all := NewAllTools(r, chained(r, executor.Options{}), Options{})
	defer all.Close()
	if all.Saved(&caller.Client{}) != nil {
		t.Error("a view of the tools themselves saves definitions")
	}
}

// BenchmarkDirect measures the counting of all definitions, which happens once for each catalogue.
func BenchmarkDirect(b *testing.B) {
	s := catalog.Server{Name: "s", Known: true}
	for i := range 500 {
		s.Tools = append(s.Tools, catalog.Tool{
			Name: fmt.Sprintf("tool_%d", i), Description: strings.Repeat("Some words about what it does. ", 10),
			InputSchema: json.RawMessage(`{"type":"object","properties":{` + strings.Repeat(`"name":{"type":"string","description":"The name of it"},`, 10) + `"n":{"type":"integer"}}}`),
		})
	}
	snap := catalog.NewSnapshot([]catalog.Server{s})
	for b.Loop() {
		var t texts
		t.direct(snap)
	}
}
