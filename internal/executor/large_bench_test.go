package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/results"
)

// BenchmarkExec_Large measures a call with a result of one megabyte: a JSON table, which becomes TOON, or lines of plain text,
// which are not changed.
func BenchmarkExec_Large(b *testing.B) {
	var table strings.Builder
	table.WriteByte('[')
	for i := 0; table.Len() < 1<<20; i++ {
		fmt.Fprintf(&table, `{"id": %d, "name": "item number %d", "state": "open", "score": %d.5, "owner": {"login": "user%d", "admin": false}},`+"\n",
			1000+i, i, i%97, i%13)
	}
	result := func(text string) json.RawMessage {
		return json.RawMessage(`{"content":[` + string(wire.TextBlock(text)) + `]}`)
	}
	fake := mcptest.Spec{
		Tools: json.RawMessage(`[{"name":"table","inputSchema":{"type":"object"}},{"name":"lines","inputSchema":{"type":"object"}}]`),
		Results: map[string]json.RawMessage{
			"table": result(strings.TrimSuffix(table.String(), ",\n") + "]"),
			"lines": result(strings.Repeat("a line of plain text, as a log has many, with a number 1234567\n", 1<<14)),
		},
	}
	for _, c := range []struct {
		name, tool string
		toon       bool
		form       results.Format
	}{{"TOON", "table", true, results.Format{}}, {"TOON and structuredContent", "table", true, always}, {"JSON and structuredContent", "table", false, always}, {"lines", "lines", true, results.Format{}}} {
		b.Run(c.name, func(b *testing.B) {
			e := executing(b, Options{TOON: c.toon}, nil, piped(b, "shop", fake))
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
