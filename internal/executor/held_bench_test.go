package executor

import (
	"strings"
	"testing"

	"mcpx/internal/registry"
)

// BenchmarkCut_Many is the first page of a long result with very many parts:
// the bytes it takes beside its text are what counts.
func BenchmarkCut_Many(b *testing.B) {
	const size = 20 << 20
	for name, text := range map[string]string{
		"items": "[" + strings.Repeat("1,", size/2) + "1]",
		"lines": strings.Repeat("a\n", size/2),
	} {
		b.Run(name, func(b *testing.B) {
			e := New(registry.New(nil, registry.Options{}), Options{ResultTokens: 4000})
			b.ReportAllocs()
			for b.Loop() {
				h := e.begin().hold(text, text, false, "")
				e.begin().cut(h, h.all(), e.begin().limit(), readArguments{})
			}
			b.ReportMetric(float64(e.store.bytes)/float64(len(e.store.order))/(1<<20), "MiB-kept")
			e.store.timer.Stop()
		})
	}
}
