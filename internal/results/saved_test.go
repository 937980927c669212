package results

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// TestAnswer_Saved: if an answer has fewer tokens than the server's result, the difference is counted as compression, as
// cutting, or as what the caller did not ask for. Nothing is counted twice.
func TestAnswer_Saved(t *testing.T) {
	store := NewStore(nil)
	rows := mustJSON(t, 300)
	block := func(texts ...string) string {
		var all []json.RawMessage
		for _, text := range texts {
			all = append(all, wire.TextBlock(text))
		}
		return string(wire.Encode(all))
	}
	prose := strings.Repeat("A line of some words, and of some others.\n", 1000)
	table := Roughly(rows)
	compact := Roughly(compress.Text(rows, compress.Options{TOON: true}).Text)
	for _, tt := range []struct {
		name, raw            string
		a                    Answer
		limit                int
		received, compressed int
		cut, left            bool
	}{
		{name: "as it is", raw: `{"content":` + block("a word") + `}`, received: Roughly("a word")},
		{name: "a table", raw: `{"content":` + block(rows) + `}`, received: table, compressed: table - compact},
		{name: "a table that is cut", raw: `{"content":` + block(rows) + `}`, limit: 600, received: table, compressed: table - compact, cut: true},
		{name: "prose that is cut", raw: `{"content":` + block(prose) + `}`, limit: 600, received: Roughly(prose), cut: true},
		{name: "several texts that are cut", raw: `{"content":` + block(prose, "between", prose) + `}`, limit: 600, received: 2*Roughly(prose) + Roughly("between"), cut: true},
		{name: "untouched", raw: `{"content":` + block(rows) + `}`, a: Answer{Untouched: true}, received: table},
		{name: "only structured", raw: `{"content":` + block("done") + `,"structuredContent":{"result":` + rows + `}}`,
			received: Roughly("done") + Roughly(`{"result":`+rows+`}`), compressed: Roughly(`{"result":`+rows+`}`) - Roughly(compress.Text(`{"result":`+rows+`}`, compress.Options{TOON: true}).Text)},
		{name: "only structured, and cut", raw: `{"content":` + block("done") + `,"structuredContent":{"result":` + rows + `}}`, limit: 600,
			received: Roughly("done") + Roughly(`{"result":`+rows+`}`), compressed: Roughly(`{"result":`+rows+`}`) - Roughly(compress.Text(`{"result":`+rows+`}`, compress.Options{TOON: true}).Text), cut: true},
		{name: "grep", raw: `{"content":` + block(prose+"a needle\n") + `}`, a: Answer{Grep: "needle"}, received: Roughly(prose + "a needle\n"), left: true},
		{name: "grep in a table", raw: `{"content":` + block(rows) + `}`, a: Answer{Grep: "name 17 "}, received: table, compressed: table - compact, left: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := tt.a
			a.Pages = Pages{Store: &store, Limit: tt.limit, Preview: 300, Texts: compress.Options{TOON: true}}
			if a.Limit == 0 {
				a.Pages.Limit = 1_000_000
			}
			out, err := a.Of(context.Background(), json.RawMessage(tt.raw))
			if err != nil {
				t.Fatal(err)
			}
			sent := 0
			for _, raw := range out.Content {
				sent += Roughly(wire.ReadBlock(raw).Text)
			}
			compression := out.Received - out.Sent - out.Cut - out.LeftOut
			if out.Received != tt.received || compression != tt.compressed || (out.Cut > 0) != tt.cut || (out.LeftOut > 0) != tt.left || out.Cut < 0 || out.LeftOut < 0 {
				t.Errorf("received %d, sent %d, compression %d, cut %d, left out %d; want received %d, compression %d",
					out.Received, out.Sent, compression, out.Cut, out.LeftOut, tt.received, tt.compressed)
			}
			if difference := sent - out.Sent; difference*50 > sent || -difference*50 > sent { // cut texts are estimated from other samples
				t.Errorf("%d tokens are in the answer, counted %d", sent, out.Sent)
			}
		})
	}
}

// mustJSON returns a table with so many rows, as pretty JSON.
func mustJSON(t *testing.T, n int) string {
	t.Helper()
	var rows []map[string]any
	for i := range n {
		rows = append(rows, map[string]any{"id": i, "name": "name " + strings.Repeat("x", i%7) + " of it", "open": i%2 == 0})
	}
	rows[17]["name"] = "name 17 of it"
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestMissing: each key of a filter that the value does not have is named, also behind one that it has.
func TestMissing(t *testing.T) {
	value := json.RawMessage(`{"id":1,"title":"x","user":{}}`)
	for filter, want := range map[string]string{
		`{i: .id, t: .titel, .user, n: .number}`: `no key "titel" (did you mean "title"?); no key "number"; `,
		`.id, .title`:                            ``,
		`{total: .id} | .total`:                  ``,
		`.nope`:                                  `no key "nope"; `,
	} {
		if got := missing(filter, value); got != want {
			t.Errorf("%s: got %q", filter, got)
		}
	}
}
