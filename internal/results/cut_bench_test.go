package results

import (
	"strings"
	"testing"
)

// BenchmarkCut_Many makes the first page of a long result with very many items or lines. It measures the memory that is needed
// in addition to the text.
func BenchmarkCut_Many(b *testing.B) {
	const size = 20 << 20
	for name, text := range map[string]string{
		"items": "[" + strings.Repeat("1,", size/2) + "1]",
		"lines": strings.Repeat("a\n", size/2),
	} {
		b.Run(name, func(b *testing.B) {
			p := Pages{Store: newStore(), Limit: 4000}
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				h := p.divide(text, text, false)
				p.cut(h, h.all(), p.limit(), ReadArguments{}, "")
				size = h.size()
			}
			b.ReportMetric(float64(size)/(1<<20), "MiB-kept")
		})
	}
}
