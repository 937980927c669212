package results

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
	"mcpx/internal/mcptest"
)

// TestCut_Bytes: a result over the limit of bytes is cut to that number of bytes. It can be read to its end in parts that are
// each within the limit.
func TestCut_Bytes(t *testing.T) {
	mcptest.OneGoroutine(t)
	var rows, lines strings.Builder
	for i := range 400 {
		fmt.Fprintf(&rows, `,{"id":%d,"name":"row number %d of many","größe":"日本語"}`, i, i)
		fmt.Fprintf(&lines, "line %d: the quick brown fox\n", i)
	}
	texts := map[string]string{
		"rows":       "[" + rows.String()[1:] + "]",
		"lines":      lines.String(),
		"one line":   strings.Repeat("word ", 8000),
		"long items": `["` + strings.Repeat("word ", 4000) + `","` + strings.Repeat("日本 ", 4000) + `"]`,
	}
	for _, bytes := range []int{1000, 2500, 7500} {
		for _, limit := range []int{0, 3000, 20_000} {
			for _, first := range []bool{false, true} {
				p := Pages{Store: newStore(), Limit: limit, Bytes: bytes, LineFirst: first, Texts: compress.Options{TOON: true}}
				for name, text := range texts {
					t.Run(fmt.Sprintf("%d bytes, %d tokens, line first %t, %s", bytes, limit, first, name), func(t *testing.T) {
						readToTheEnd(t, p, text)
					})
				}
			}
		}
	}
}

// readToTheEnd reads all parts of a cut text, each with the call that the part before names. It fails if a part is over the
// limit of bytes, or if there is no end.
func readToTheEnd(t *testing.T, p Pages, text string) {
	shown := p.cutShown(text, compress.Text(text, p.Texts).Text, false, p.limit())
	for range 500 {
		if len(shown) > p.Bytes {
			t.Fatalf("%d bytes, more than %d", len(shown), p.Bytes)
		}
		at := strings.Index(shown, " left")
		if at < 0 {
			return
		}
		if first := strings.HasPrefix(shown, "[") && !strings.Contains(shown[:at], "\n"); first != p.LineFirst {
			t.Fatalf("the line is first: %t, want %t: %.200s", first, p.LineFirst, shown)
		}
		// The line that says how to read on from this part is the last one, or the first if LineFirst is set. Lines about cut
		// items are in between.
		line := shown[strings.LastIndexByte(strings.TrimSuffix(shown, "\n"), '\n')+1:]
		if p.LineFirst {
			line, _, _ = strings.Cut(shown, "\n")
		}
		raw := line[strings.Index(line, `{"handle"`):]
		var next ReadArguments
		if err := json.NewDecoder(strings.NewReader(raw)).Decode(&next); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		page, err := p.Read(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		shown = page.Text
	}
	t.Error("no end")
}

// TestAppend_Bytes: the limit is for the bytes of all texts of a result together, and a text that mcpx appends begins on a new
// line.
func TestAppend_Bytes(t *testing.T) {
	for _, limit := range []int{0, 20_000} {
		p := Pages{Store: newStore(), Limit: limit, Bytes: 3000}
		for _, sizes := range [][2]int{{100, 100}, {100, 9000}, {9000, 100}, {9000, 9000}, {2900, 200}} {
			prose, data := strings.Repeat("word ", sizes[0]/5), `{"a":"`+strings.Repeat("word ", sizes[1]/5)+`"}`
			block := wire.TextBlock(prose)
			s := Shown{Received: []wire.Block{wire.ReadBlock(block)}, Content: []json.RawMessage{block}, Texts: []string{prose}}
			content, cut := p.Append(s, data, data)
			first, last := wire.ReadBlock(content[0]).Text, wire.ReadBlock(content[1]).Text
			fits := sizes[0]+sizes[1] < 2900
			if size := len(first) + len(last); size > 3000+1 || (cut == 0) != fits || !strings.HasPrefix(first, "word ") || last[0] != '\n' {
				t.Errorf("%v: %d bytes, %d tokens: %.100s ... %.100s", sizes, size, cut, first, last)
			}
		}
	}
}
