package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"mcpx/internal/mcptest"
)

// BenchmarkReplicas_CPU compares the CPU time that a small call takes in the mcpx process: of a replica that answers it itself, and
// of an mcpx without cluster. Both get the same calls by turns, in several rounds; the times are the medians of the rounds. The
// other replica gets no calls. With limits, every call is counted, and the other replica gets the counts.
func BenchmarkReplicas_CPU(b *testing.B) {
	servers := map[string]server{"fake": fake(b, mcptest.Spec{})}
	for _, c := range []struct {
		name   string
		global map[string]any
	}{
		{"plain", nil},
		{"limits", map[string]any{"limits": map[string]any{
			"calls_per_minute": 10e6, "principal": map[string]any{"calls_per_minute": 10e6}, "server": map[string]any{"calls_per_minute": 10e6},
		}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := startReplicas(b, 2, servers, c.global)
			h := newHome(b)
			config := maps.Clone(c.global)
			alone := newCostly(b, h.serveHTTP(b, "--config", h.config(b, servers, config)))
			replica := newCostly(b, f.replicas[0].daemon)
			for range 500 { // caches are filled, connections are open
				alone.call()
				replica.call()
			}
			var without, with, ratios []float64
			for b.Loop() {
				without, with = append(without, alone.round()), append(with, replica.round())
				ratios = append(ratios, with[len(with)-1]/without[len(without)-1])
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(without), "µs-alone")
			b.ReportMetric(median(with), "µs-replica")
			b.ReportMetric(median(with)/median(without), "ratio")
			b.ReportMetric(median(ratios), "ratio-of-rounds")
		})
	}
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

// costly is a client of an mcpx whose CPU time is measured.
type costly struct {
	b  *testing.B
	at *daemon
	v  *visitor
}

func newCostly(b *testing.B, at *daemon) *costly { return &costly{b, at, visitAt(b, at)} }

func (c *costly) call() {
	c.b.Helper()
	if said := c.v.ask(c.at, execute(1, "fake", "echo", `{"text":"hello"}`)); !strings.Contains(said, "hello") {
		c.b.Fatal(said)
	}
}

// round makes calls and returns the CPU time of each, in microseconds.
func (c *costly) round() float64 {
	const calls = 200
	before := cpuTime(c.b, c.at.cmd.Process.Pid)
	for range calls {
		c.call()
	}
	return float64((cpuTime(c.b, c.at.cmd.Process.Pid) - before).Nanoseconds()) / 1e3 / calls
}

// cpuTime returns the CPU time of a process so far, without its children: its CPU clock (clock_getcpuclockid).
func cpuTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	var at syscall.Timespec
	const schedClock = 2
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(^pid<<3|schedClock), uintptr(unsafe.Pointer(&at)), 0); errno != 0 {
		t.Fatal(fmt.Errorf("the CPU clock of process %d: %w", pid, errno))
	}
	return time.Duration(at.Nano())
}
