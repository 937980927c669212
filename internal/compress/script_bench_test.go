package compress

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// benchUneven returns a document whose objects have some keys in common, but are all of different kinds.
func benchUneven(size int) string {
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string { return fmt.Sprintf("%x", r.Uint64()>>(r.IntN(40))) }
	var out strings.Builder
	out.WriteString(`{"items":[`)
	for i := 0; out.Len() < size; i++ {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `{"title":"%s %s %s %s","%s":[%d,%d],"note":{"text":"%s %s %s","%s":%d}}`, word(), word(), word(), word(), word()[:3], r.IntN(1e6),
			r.IntN(1e6), word(), word(), word(), word()[:2], r.IntN(1e6))
	}
	out.WriteString(`]}`)
	return out.String()
}

// benchUnlike returns a document in which nothing repeats and that has no tables. If Options.JS is false, no tokens are counted
// for it, so the benchmark shows what the search for JavaScript costs.
func benchUnlike(size int) string {
	r := rand.New(rand.NewPCG(3, 4))
	word := func() string { return fmt.Sprintf("%x", r.Uint64()>>(r.IntN(40))) }
	var out strings.Builder
	out.WriteString(`{"items":[`)
	for i := 0; out.Len() < size; i++ {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `{"%s":"%s %s %s","%s":{"%s":["%s %s",{"%s":%d}]}}`, word(), word(), word(), word(), word(), word(), word(), word(), word(), r.IntN(1e6))
	}
	out.WriteString(`]}`)
	return out.String()
}

// benchTexts returns a document of objects of one kind that have long texts, so that the keys are a small part. JavaScript is
// tried for it, but not chosen.
func benchTexts(size int) string {
	r := rand.New(rand.NewPCG(5, 6))
	words := func() string { return strings.TrimSpace(strings.Repeat(fmt.Sprintf("%x word ", r.Uint64()), 3)) }
	var out strings.Builder
	out.WriteString(`{"items":[`)
	for i := 0; out.Len() < size; i++ {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `{"title":"%s","comments":[%d,%d],"note":{"text":"%s"}}`, words(), r.IntN(1e6), r.IntN(1e6), words())
	}
	out.WriteString(`]}`)
	return out.String()
}

// BenchmarkText_JavaScript compares the time with and without JavaScript for documents where it is chosen, where it is tried
// but not chosen, and which are over 256 KB, where it is not tried.
func BenchmarkText_JavaScript(b *testing.B) {
	for _, kind := range []struct {
		name string
		make func(int) string
	}{{"nested", benchNested}, {"uneven", benchUneven}, {"unlike", benchUnlike}, {"texts", benchTexts}, {"table", benchTable}} {
		for _, size := range []struct {
			name  string
			bytes int
		}{{"2KB", 2 << 10}, {"20KB", 20 << 10}, {"200KB", 200 << 10}, {"1MB", 1 << 20}} {
			in := kind.make(size.bytes)
			for _, js := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/%s/js=%t", kind.name, size.name, js), func(b *testing.B) {
					b.SetBytes(int64(len(in)))
					form := Form("")
					for b.Loop() {
						form = Text(in, Options{TOON: true, JS: js}).Form
					}
					b.ReportMetric(0, string(form))
				})
			}
		}
	}
}
