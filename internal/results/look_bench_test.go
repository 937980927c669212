package results

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"mcpx/internal/compress"
)

// BenchmarkLook makes the first look at results of a megabyte, from the text as the server sent it.
func BenchmarkLook(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("retry the upload after a timeout when server returns empty body and client keeps session open for next request")
	bodies := func(n int, format string, size int) string {
		items := make([]string, n)
		for i := range items {
			var body strings.Builder
			for body.Len() < size {
				body.WriteString(words[r.IntN(len(words))] + " ")
			}
			items[i] = fmt.Sprintf(format, i, body.String())
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	const item = `{"id":%[1]d,"user":{"login":"u%[1]d","type":"User"},"labels":[{"name":"a","color":"b"}],"body":"%[2]s"}`
	for _, c := range []struct{ name, text string }{
		{"a table", "[" + many(11_000, `{"id":%[1]d,"name":"row number %[1]d of many","state":"open","url":"https://api.example.com/rows/%[1]d"}`, ",") + "]"},
		{"long items", bodies(900, item, 1000)},
		{"few items", bodies(60, item, 16_000)},
		{"a log", many(16_000, "2026-01-02T03:00:%[1]d.123Z INFO [worker-3] request %[1]d completed in 12 ms", "\n")},
		{"a page", many(300, "## Heading %[1]d\n\n"+strings.Repeat("A paragraph with words and some more of them.\n", 70), "\n")},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			p := Pages{Limit: 20_000, Preview: 3000, Texts: compress.Options{TOON: true, JS: true}}
			b.ReportAllocs()
			for b.Loop() {
				p.Store = newStore()
				shown := compress.Text(c.text, p.Texts).Text
				if look := p.cutShown(c.text, shown, false, p.Limit); len(look) > 100_000 {
					b.Fatal(fmt.Sprint(len(look)))
				}
			}
		})
	}
}
