package compress

import (
	"fmt"
	"strings"
	"testing"
)

// Sizes of the benchmark documents: a small answer, a usual large one, the largest that is sensible.
var benchSizes = []struct {
	name  string
	bytes int
}{{"1KB", 1 << 10}, {"100KB", 100 << 10}, {"5MB", 5 << 20}}

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
		compact, _ := minify(in)
		run := func(step string, text string, f func()) {
			b.Run(step+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			})
		}
		run("minify", in, func() { minify(in) })
		run("minify compact", compact, func() { minify(compact) })
		run("read", compact, func() { read(compact) })
		run("Encode", in, func() { Encode([]byte(in)) })
		run("Items", in, func() { _, _ = Items([]byte(in)) })
		run("Shape", in, func() { Shape([]byte(in), 300) })
		run("Equal", in, func() { Equal([]byte(in), []byte(compact)) })
	}
}
