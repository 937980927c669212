package main

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sample is what this process has at one moment. What /proc says is -1 where
// there is none.
type sample struct {
	at                 time.Time
	rss, heap          float64 // MB; the heap after a collection
	goroutines         int
	files, descendants int
}

func measure() sample {
	runtime.GC()
	runtime.GC() // finalizers of the first have run
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return sample{
		at: time.Now(), heap: float64(m.HeapAlloc) / (1 << 20), rss: residentMB(),
		goroutines: runtime.NumGoroutine(), files: openFiles(), descendants: descendants(os.Getpid()),
	}
}

func residentMB() float64 {
	data, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(data))
	if err != nil || len(fields) < 2 {
		return -1
	}
	pages, _ := strconv.Atoi(fields[1])
	return float64(pages*os.Getpagesize()) / (1 << 20)
}

func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(entries) - 1 // the folder itself
}

// descendants counts the processes under pid, zombies too.
func descendants(pid int) int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return -1
	}
	children := make(map[int][]int)
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 {
			parent, _ := strconv.Atoi(fields[1])
			children[parent] = append(children[parent], child)
		}
	}
	n := 0
	for open := []int{pid}; len(open) > 0; {
		next := children[open[0]]
		n += len(next)
		open = append(open[1:], next...)
	}
	return n
}

const header = "when      rss MB  heap MB  goroutines  files  children  sessions   calls  errors by code"

// line is a sample for people, with what the clients got so far.
func (s sample) line(when string, t *tally) string {
	sessions, calls, codes := 0, 0, ""
	if t != nil {
		t.mu.Lock()
		sessions, calls = t.sessions, t.calls
		var parts []string
		for _, code := range slices.Sorted(maps.Keys(t.codes)) {
			parts = append(parts, fmt.Sprintf("%s %d", code, t.codes[code]))
		}
		t.mu.Unlock()
		codes = strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%-8s %7.1f  %7.2f  %10d  %5d  %8d  %8d  %6d  %s",
		when, s.rss, s.heap, s.goroutines, s.files, s.descendants, sessions, calls, codes)
}

// slope is the growth per minute over the later two thirds of the samples: the
// first third is warming up.
func slope(samples []sample, of func(sample) float64) float64 {
	samples = samples[len(samples)/3:]
	if len(samples) < 3 {
		return 0
	}
	var sumX, sumY, sumXX, sumXY float64
	for _, s := range samples {
		x, y := s.at.Sub(samples[0].at).Minutes(), of(s)
		sumX, sumY, sumXX, sumXY = sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	n := float64(len(samples))
	return (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
}

// report prints the verdict; it is true if nothing grew.
func report(o options, samples []sample, idle, after, atStart, atEnd sample, t *tally) bool {
	ok := true
	verdict := func(what string, value, most float64, unit string) {
		word := "ok"
		if value > most {
			word, ok = "TOO MUCH", false
		}
		fmt.Printf("%-52s %8.2f %s (at most %.2f): %s\n", what, value, unit, most, word)
	}
	fmt.Println()
	verdict("growth of the heap", slope(samples, func(s sample) float64 { return s.heap }), o.heapSlope, "MB/min")
	fmt.Printf("%-52s %8.2f MB/min\n", "growth of the resident size", slope(samples, func(s sample) float64 { return s.rss }))
	verdict("growth of goroutines", slope(samples, func(s sample) float64 { return float64(s.goroutines) }), o.countSlope, "/min")
	verdict("growth of descriptors", slope(samples, func(s sample) float64 { return float64(s.files) }), o.countSlope, "/min")
	// Upstreams come and go also without clients, so a few more or less say nothing.
	verdict("goroutines without clients, more than before them", float64(after.goroutines-idle.goroutines), 40, "")
	verdict("descriptors without clients, more than before them", float64(after.files-idle.files), 20, "")
	verdict("goroutines when all is closed, more than at the start", float64(atEnd.goroutines-atStart.goroutines), 3, "")
	verdict("descriptors when all is closed, more than at the start", float64(atEnd.files-atStart.files), 3, "")
	verdict("processes when all is closed", float64(max(0, atEnd.descendants)), 0, "")
	verdict("answers that are no JSON-RPC response", float64(t.codes["not JSON"]+t.codes["no result"]), 0, "")
	return ok
}
