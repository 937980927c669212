package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
)

// smallCall returns an executor with a fake server that has one ordinary tool, and a call of that tool.
func smallCall(b *testing.B, rights ...conf.Right) (*Executor, Request) {
	b.Helper()
	fake := mcptest.Spec{
		Tools: json.RawMessage(`[{"name":"search_items","inputSchema":{"type":"object","properties":{
			"query":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":100},
			"order":{"type":"string","enum":["asc","desc"]},"tags":{"type":"array","items":{"type":"string"}}},
			"required":["query"],"additionalProperties":false}}]`),
		Results: map[string]json.RawMessage{"search_items": json.RawMessage(`{"content":[` + string(wire.TextBlock("Three items were found; the first is the best.")) + `]}`)},
	}
	// As in a running mcpx, there is a logger that discards debug messages.
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	rules := &policy.Rules{}
	if rights != nil {
		rules.Rights = policy.NewRights(rights, nil)
	}
	reg := registry.New([]registry.Server{piped(b, "shop", fake)}, registry.Options{Rules: rules})
	reg.Start()
	b.Cleanup(func() { reg.Close(0) })
	reg.WaitTried(b.Context())
	e := chained(reg, Options{TOON: true, TypeScript: true, ResultTokens: 20_000, Logger: logger})
	return e, Request{Server: "shop", Tool: "search_items", Arguments: json.RawMessage(`{"query":"blue chairs","limit":10,"order":"asc","tags":["garden","sale"]}`)}
}

// BenchmarkExec_Rights is BenchmarkExec for a principal whose rights depend on rules in the config.
func BenchmarkExec_Rights(b *testing.B) {
	var rules []conf.Right
	for i := range 10 {
		rules = append(rules, conf.Right{Principals: []string{fmt.Sprintf("team-%d-*", i)}, Allow: []string{"shop.search_*", "shop.get_*"}, Confirm: conf.ConfirmDestructive, ReadOnly: i > 5})
	}
	rules[5].Confirm = conf.ConfirmNone
	e, r := smallCall(b, rules...)
	r.Client = &caller.Client{ID: "1", View: "two_tools", Principal: &caller.Principal{ID: "x", Name: "team-5-ann"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Exec(context.Background(), r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkExec measures one small call, including the session with the fake server and the fake itself.
func BenchmarkExec(b *testing.B) {
	e, r := smallCall(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Exec(context.Background(), r); err != nil {
			b.Fatal(err)
		}
	}
}
