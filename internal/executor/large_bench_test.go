package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/results"
)

// BenchmarkExec_Large measures a call with a result of one megabyte: a JSON table, which becomes TOON, or lines of plain text,
// which are not changed. In some cases mcpx cuts the result as it does by default.
func BenchmarkExec_Large(b *testing.B) {
	var table strings.Builder
	table.WriteByte('[')
	for i := 0; table.Len() < 1<<20; i++ {
		fmt.Fprintf(&table, `{"id": %d, "name": "item number %d", "state": "open", "score": %d.5, "owner": {"login": "user%d", "admin": false}},`+"\n",
			1000+i, i, i%97, i%13)
	}
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("retry the upload after a timeout when server returns empty body and client keeps session open for next request")
	said := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = words[r.IntN(len(words))]
		}
		return strings.Join(out, " ")
	}
	var items strings.Builder
	items.WriteByte('[')
	for i := 0; items.Len() < 1<<20; i++ {
		fmt.Fprintf(&items, `{"id":%d,"title":"issue %d","user":{"login":"user%d","type":"User"},"labels":[{"name":"bug"}],"body":"%s"},`,
			i, i*7, i%13, said(200))
	}
	result := func(text string) json.RawMessage {
		return json.RawMessage(`{"content":[` + string(wire.TextBlock(text)) + `]}`)
	}
	fake := mcptest.Spec{
		Tools: json.RawMessage(`[{"name":"table","inputSchema":{"type":"object"}},{"name":"lines","inputSchema":{"type":"object"}},{"name":"items","inputSchema":{"type":"object"}}]`),
		Results: map[string]json.RawMessage{
			"table": result(strings.TrimSuffix(table.String(), ",\n") + "]"),
			"items": result(strings.TrimSuffix(items.String(), ",") + "]"),
			"lines": result(strings.Repeat("a line of plain text, as a log has many, with a number 1234567\n", 1<<14)),
		},
	}
	for _, c := range []struct {
		name, tool string
		toon       bool
		form       results.Format
		limit      int
	}{
		{"TOON", "table", true, results.Format{}, 0}, {"TOON and structuredContent", "table", true, always, 0},
		{"JSON and structuredContent", "table", false, always, 0}, {"lines", "lines", true, results.Format{}, 0},
		{"cut table", "table", true, results.Format{}, 20_000}, {"cut items", "items", true, results.Format{}, 20_000},
		{"cut lines", "lines", true, results.Format{}, 20_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := executing(b, Options{TOON: c.toon, JS: c.limit > 0, ResultTokens: c.limit, PreviewTokens: 3000}, nil, piped(b, "shop", fake))
			r := Request{Server: "shop", Tool: c.tool, Arguments: json.RawMessage(`{}`), Format: c.form}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Exec(context.Background(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
