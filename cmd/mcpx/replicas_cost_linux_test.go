package main

import (
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"mcpx/internal/mcptest"
)

// BenchmarkReplicas_CPU compares the CPU time that a small call takes in the mcpx process: of a replica that answers it itself,
// and of two mcpx without cluster (see compare). The other replica gets no calls. With limits, every call is counted, and the
// other replica gets the counts.
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
			ways := [3]*costly{newCostly(b, f.replicas[0].hosted)}
			for i := range 2 {
				h := newHome(b)
				ways[1+i] = newCostly(b, h.serveHTTP(b, "--config", h.config(b, servers, maps.Clone(c.global))))
			}
			for range 500 { // caches are filled, connections are open
				for _, one := range ways {
					one.call()
				}
			}
			compare(b, ways, "µs", "replica", func(one *costly, _ *testing.B) (_, cpu float64) { return 0, one.round() })
		})
	}
}

// costly is a client of an mcpx whose CPU time is measured.
type costly struct {
	b  *testing.B
	at *hosted
	v  *visitor
}

func newCostly(b *testing.B, at *hosted) *costly { return &costly{b, at, visitAt(b, at)} }

func (c *costly) call() {
	c.b.Helper()
	if said := c.v.ask(c.at, execute(1, "fake", "echo", `{"text":"hello"}`)); !strings.Contains(said, "hello") {
		c.b.Fatal(said)
	}
}

// round makes calls and returns the CPU time of each, in microseconds.
func (c *costly) round() float64 {
	const calls = 50
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
