// Package memory bounds the memory that this process uses, and sets how often it collects garbage.
package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Default returns the soft memory limit for a process in a container with a memory limit: 80 % of the container's limit, in bytes.
// Elsewhere it returns 0, which means no limit.
func Default() int64 { return container() / 10 * 8 }

const (
	// outside is how many bytes of the resident memory the Go runtime does not count, mostly pages of the executable.
	outside = 48 << 20
	// usualPercent is the usual value for GOGC. The live heap of mcpx is only a few megabytes, so with GOGC=100 garbage would be
	// collected very often. With 200, collecting takes 1/12 of the CPU time of a small call, with 400 it takes 1/24. An idle
	// mcpx needs the same memory with 200 as with 400.
	usualPercent = 400
	minPercent   = 100
	// garbage is how many bytes the heap may grow before the next collection. tuner sets GOGC accordingly, but within the bounds
	// minPercent and usualPercent. So GOGC is minPercent if the live heap is larger than garbage. With 12 MiB instead of 64 MiB,
	// mcpx needs 22 to 27 MB less resident memory if results have 1 MB. If results are small, the calls per second and the CPU time
	// did not change measurably. With 4 MiB, both would be worse.
	garbage = 12 << 20
)

// Tune makes this process adapt GOGC to the size of the live heap. If the environment variable GOGC is set, Tune does
// nothing.
func Tune() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(usualPercent)
	follow(&tuner{percent: usualPercent, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}})
}

// Limit sets a soft limit for the resident memory of this process, in bytes; 0 means no limit. Close to the limit,
// garbage is collected more often. If the environment variable GOMEMLIMIT is set, Limit does nothing.
func Limit(bytes int64) {
	if bytes > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes - min(outside, bytes/4))
	}
}

// tuner sets GOGC after each garbage collection.
type tuner struct {
	percent int
	live    []metrics.Sample
}

// follow calls t.set after each garbage collection. It uses a finalizer, which runs after the collection that finds
// its object unreachable.
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

// percentOf returns the GOGC to use for a live heap of this many bytes. It changes in steps of 50, as each change of
// GOGC stops all goroutines for a moment.
func percentOf(live uint64) int {
	if live == 0 {
		return usualPercent
	}
	return min(max(int(100*garbage/live)/50*50, minPercent), usualPercent)
}
