package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// largeAnswers returns responses to tool calls of about a megabyte: a table in JSON, lines of plain text, and Japanese
// text.
func largeAnswers() map[string][]byte {
	var table strings.Builder
	table.WriteByte('[')
	for i := 0; table.Len() < 1<<20; i++ {
		fmt.Fprintf(&table, `{"id": %d, "name": "item number %d", "state": "open", "score": %d.5, "admin": false},`+"\n", 1000+i, i, i%97)
	}
	table.WriteString("null]")
	answer := func(text string) []byte {
		return append(append([]byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[`), TextBlock(text)...), `],"isError":false}}`...)
	}
	return map[string][]byte{
		"table": answer(table.String()),
		"lines": answer(strings.Repeat("a line of plain text, as a log has many, with a number 1234567\n", 1<<14)),
		"kanji": answer(strings.Repeat("一行の文字、ログのように長い\n", 1<<14+1<<13)),
	}
}

func BenchmarkParse(b *testing.B) {
	answers := largeAnswers()
	answers["small"] = []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"a","tool_name":"b","arguments":{"x":1,"y":"two"}}}}`)
	for name, data := range answers {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if m, err := Parse(data); err != nil || !m.Valid || !m.UTF8 {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkValid(b *testing.B) {
	for name, data := range largeAnswers() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				Valid(data)
			}
		})
		b.Run(name+"-standard", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				_ = json.Valid(data) && utf8.Valid(data)
			}
		})
	}
}
