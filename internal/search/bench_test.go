package search

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
)

// large returns a catalogue of 3,000 tools. If MCPX_RETRIEVAL is set, it is the catalogue in that folder, repeated under other
// server names; otherwise it has made-up words.
func large(b *testing.B) (*catalog.Snapshot, []string) {
	snap, queries := many(3000), []string{
		"read the csv, then plot it as a bar chart",
		"Fetch the latest news about the market and save a summary to /tmp/news.md",
		"list open pull requests",
		strings.Repeat("Find the three best hotels near the station, compare their prices, and send the list to the team. ", 8),
	}
	if real, tasks, ok := readRetrieval(b); ok {
		var servers []catalog.Server
		for n := 0; n < 3000; {
			for _, s := range real.Servers {
				if n >= 3000 {
					break
				}
				if n > 0 {
					s.Name += string(rune('a' + n/1300))
				}
				servers = append(servers, s)
				n += len(s.Tools)
			}
		}
		snap, queries = catalog.NewSnapshot(servers), nil
		for i := range tasks {
			queries = append(queries, tasks[i].Query)
		}
	}
	return snap, queries
}

func BenchmarkNew(b *testing.B) {
	snap, _ := large(b)
	New(snap) // the tables are made only once in a process, so not in the measured loop
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x := New(snap)
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportAllocs()
	for b.Loop() {
		New(snap)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB-kept")
	b.ReportMetric(float64(snap.Tools()), "tools")
	runtime.KeepAlive(x)
}

func BenchmarkSearch(b *testing.B) {
	snap, queries := large(b)
	x := New(snap)
	var took []time.Duration
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		x.Search(queries[i%len(queries)], Options{})
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*95/100])/1e6, "ms-p95")
}
