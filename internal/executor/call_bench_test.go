package executor

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/wire"
)

// smallCall is an executor in front of a fake with one ordinary tool.
func smallCall(b *testing.B) (*Executor, Request) {
	b.Helper()
	fake := mcptest.Spec{
		Tools: json.RawMessage(`[{"name":"search_items","inputSchema":{"type":"object","properties":{
			"query":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":100},
			"order":{"type":"string","enum":["asc","desc"]},"tags":{"type":"array","items":{"type":"string"}}},
			"required":["query"],"additionalProperties":false}}]`),
		Results: map[string]json.RawMessage{"search_items": json.RawMessage(`{"content":[` + string(wire.TextBlock("Three items were found; the first is the best.")) + `]}`)},
	}
	// As mcpx runs: there is a logger, and it discards debug lines.
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	e := executing(b, Options{TOON: true, TypeScript: true, ResultTokens: 20_000, Logger: logger}, nil, piped(b, "shop", fake))
	return e, Request{Server: "shop", Tool: "search_items", Arguments: json.RawMessage(`{"query":"blue chairs","limit":10,"order":"asc","tags":["garden","sale"]}`)}
}

// BenchmarkExec is one small call, with the upstream's session and the fake.
func BenchmarkExec(b *testing.B) {
	e, r := smallCall(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Exec(context.Background(), r); err != nil {
			b.Fatal(err)
		}
	}
}
