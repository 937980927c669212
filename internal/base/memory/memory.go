// Package memory bounds the memory of this process.
package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Default returns the soft limit for a process in a container with a memory limit: 0.8 of that limit, in bytes; 0 = none.
func Default() int64 { return container() / 10 * 8 }

const (
	// outside is the part of the memory that the runtime of Go does not count: mostly the pages of the executable.
	outside = 48 << 20
	// usualPercent is the usual GOGC: the live heap is only a few megabytes, so that 100 would collect very often. Of the CPU
	// time of a small call, collecting takes 1/12 at 200 and 1/24 at 400. An idle mcpx needs the same memory with both.
	usualPercent = 400
	leastPercent = 100
	// garbage bounds what usualPercent may add to the live heap. A larger heap has leastPercent.
	garbage = 64 << 20
)

// Tune sets how often garbage is collected, in proportion to the live heap, from now on. GOGC in the environment takes its place.
func Tune() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(usualPercent)
	follow(&tuner{percent: usualPercent, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}})
}

// Limit sets a soft limit for the resident memory of this process, in bytes; 0 = none. Near it, garbage is collected more often.
// GOMEMLIMIT in the environment takes its place.
func Limit(bytes int64) {
	if bytes > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes - min(outside, bytes/4))
	}
}

// tuner sets GOGC after each collection.
type tuner struct {
	percent int
	live    []metrics.Sample
}

// follow calls t.set after each collection: a finalizer runs after the collection that finds its object unreachable.
func follow(t *tuner) {
	type cycle struct{ _ *tuner }
	runtime.SetFinalizer(&cycle{t}, func(*cycle) {
		t.set()
		follow(t)
	})
}

func (t *tuner) set() {
	metrics.Read(t.live)
	if percent := percentOf(t.live[0].Value.Uint64()); percent != t.percent {
		t.percent = percent
		debug.SetGCPercent(percent)
	}
}

// percentOf returns GOGC for a live heap. It changes in steps, as each change stops all goroutines for a moment.
func percentOf(live uint64) int {
	if live == 0 {
		return usualPercent
	}
	return min(max(int(100*garbage/live)/50*50, leastPercent), usualPercent)
}
