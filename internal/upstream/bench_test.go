package upstream

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// BenchmarkCall measures one call: from Call through a pipe to a child process, and back. The time includes the
// work of the child; the allocations are those of mcpx alone.
func BenchmarkCall(b *testing.B) {
	eras := []struct {
		name string
		era  string
	}{{"legacy", mcptest.EraLegacy}, {"modern", mcptest.EraModern}}
	sizes := []struct {
		name string
		text string
	}{{"small", "hello"}, {"1MB", strings.Repeat(`{"id": 17, "name": "a row"}`+"\n", 40_000)}}
	for _, era := range eras {
		for _, size := range sizes {
			arguments, err := json.Marshal(map[string]string{"text": size.text})
			if err != nil {
				b.Fatal(err)
			}
			one := func(b *testing.B, u *Upstream) {
				if _, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", arguments)}); err != nil {
					b.Error(err)
				}
			}
			b.Run(era.name+"/"+size.name, func(b *testing.B) {
				u := ready(b, stdio(b, mcptest.Spec{Era: era.era}))
				b.ReportAllocs()
				for b.Loop() {
					one(b, u)
				}
			})
			if size.name != "small" {
				continue
			}
			b.Run(era.name+"/64 callers", func(b *testing.B) {
				u := ready(b, stdio(b, mcptest.Spec{Era: era.era}))
				b.ReportAllocs()
				b.SetParallelism(32) // in parallel: 32 * GOMAXPROCS goroutines
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						one(b, u)
					}
				})
			})
		}
	}
}
