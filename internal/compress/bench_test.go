package compress

import (
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
)

// benchSizes are the sizes of the benchmark documents: a small answer, two usual large ones, and one that is larger than usual.
var benchSizes = []struct {
	name  string
	bytes int
}{{"1KB", 1 << 10}, {"100KB", 100 << 10}, {"1MB", 1 << 20}, {"5MB", 5 << 20}}

func benchTable(size int) string {
	var out strings.Builder
	out.WriteString("[\n")
	for i := 0; out.Len() < size; i++ {
		if i > 0 {
			out.WriteString(",\n")
		}
		fmt.Fprintf(&out, `  {"id": %d, "name": "item number %d", "state": "open", "score": %d.5, "owner": {"login": "user%d", "admin": false}}`,
			1000+i, i, i%97, i%13)
	}
	out.WriteString("\n]")
	return out.String()
}

func benchNested(size int) string {
	var out strings.Builder
	out.WriteString(`{"items":[`)
	for i := 0; out.Len() < size; i++ {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `{"id":%d,"title":"The title of item %d","labels":[{"name":"bug"}],"meta":{"url":"https://example.com/items/%d","k%d":null}}`,
			i, i, i, i%7)
	}
	out.WriteString(`]}`)
	return out.String()
}

func benchProse(size int) string {
	return strings.Repeat("{{ This looks like a template, and is no JSON at all. }}\n", size/57+1)
}

func BenchmarkText(b *testing.B) {
	for _, kind := range []struct {
		name string
		make func(int) string
		form Form
	}{{"table", benchTable, FormTOON}, {"nested", benchNested, FormJSON}, {"prose", benchProse, FormText}} {
		for _, size := range benchSizes {
			in := kind.make(size.bytes)
			b.Run(kind.name+"/"+size.name, func(b *testing.B) {
				b.SetBytes(int64(len(in)))
				b.ReportAllocs()
				for b.Loop() {
					if out := Text(in, Options{TOON: true}); out.Form != kind.form {
						b.Fatalf("form is %s, want %s", out.Form, kind.form)
					}
				}
			})
		}
	}
}

func BenchmarkParts(b *testing.B) {
	for name, in := range map[string]string{"table": benchTable(100 << 10), "nested": benchNested(100 << 10)} {
		compact, _ := wire.Compact(in)
		run := func(step string, text string, f func()) {
			b.Run(step+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			})
		}
		run("Compact", in, func() { _, _ = wire.Compact(in) })
		run("Compact compact", compact, func() { _, _ = wire.Compact(compact) })
		run("read", in, func() { _, _, _ = read(in, true) })
		run("Encode", in, func() { Encode([]byte(in)) })
		run("Shape", in, func() { Shape([]byte(in), 300) })
		run("Equal", in, func() { Equal([]byte(in), []byte(compact)) })
	}
}

// hostile returns documents for which a careless encoder needs much time or memory, compared with their size.
func hostile() map[string]string {
	var chain, wide, rows strings.Builder
	for range 60 {
		chain.WriteString(`{"a":`)
	}
	chain.WriteByte('{')
	for i := range 100_000 {
		fmt.Fprintf(&chain, `"k%d":1,`, i)
	}
	chain.WriteString(`"z":1}` + strings.Repeat(`,"b":{"c":1}}`, 60))
	wide.WriteString("[")
	for i := range 300 {
		if i > 0 {
			wide.WriteByte(',')
		}
		wide.WriteString(`{"first":` + fmt.Sprint(i))
		for k := range 4000 {
			fmt.Fprintf(&wide, `,"k%d":%d`, k, i)
		}
		wide.WriteString("}")
	}
	wide.WriteString("]")
	rows.WriteString("[")
	for i := range 20_000 {
		fmt.Fprintf(&rows, `{"a":{"b":{"c":{"d":{"e":%d,"f":"x"}}}}},`, i)
	}
	rows.WriteString(`{"a":{"b":{"c":{"d":{"e":1,"g":"x"}}}}}]`)
	return map[string]string{
		"levels": strings.Repeat("[", 2<<20), "chain": chain.String(), "wide": wide.String(), "last row": rows.String(),
		"escapes": `["` + strings.Repeat(`\u00e9\/`, 200_000) + `"]`, "one string": `["` + strings.Repeat("a", 2<<20) + `"]`,
		"lines": strings.Repeat("{\"a\": 1}\n", 200_000) + "end", "keys": `{"` + strings.Repeat(`a":1,"`, 200_000) + `b":1}`,
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, in := range hostile() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				Text(in, Options{TOON: true})
			}
		})
	}
}
