package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// BenchmarkDaemon compares mcpx with a warm daemon and without one, in as many rounds as -benchtime says: go test ./cmd/mcpx
// -run '^$' -bench Daemon -benchtime 20x. It measures real processes. Times are wall-clock times, as medians of the rounds. The
// first answer is that to initialize. cpu is the CPU time of the process that serves, for each call. ratio is the time with the
// daemon divided by that without it (see compare).
//
// Each mcpx has a session of the system (setsid) of its own, as the daemon has. By default Linux shares its processors among
// such sessions (autogroups): under load, a process in the session of its client wakes less often, and needs up to 10 % less
// for a call (2026-11-24: 64 callers 1.05 to 1.09, and 0.98 to 1.00 with autogroups off).
func BenchmarkDaemon(b *testing.B) {
	servers := map[string]server{"fake": fake(b, mcptest.Spec{})}
	warm := newDaemonHome(b)
	ways := [3]*benched{newBenched(b, warm, servers), newBenched(b, newHome(b), servers), newBenched(b, newHome(b), servers)}
	ways[0].pid = warm.daemons(b)[0]
	b.Run("first-answer", func(b *testing.B) { compare(b, ways, "ms", "warm", (*benched).firstAnswer) })
	b.Run("exec", func(b *testing.B) { compare(b, ways, "ms", "warm", (*benched).command) })
	for _, callers := range []int{1, 64} {
		calls := func(one *benched, b *testing.B) (wall, cpu float64) { return one.calls(b, callers) }
		b.Run("calls-"+strconv.Itoa(callers), func(b *testing.B) { compare(b, ways, "µs", "warm", calls) })
	}
}

// compare measures three ways to use mcpx, by turns. The first way is the one in question, and the report calls it first. The
// other two are alike, and show the noise of the measurement. measure returns the wall-clock time and the CPU time, or 0 for what
// it does not measure. In each round, ratio is the time of the first way divided by the mean of the other two, and noise is the
// time of the second way divided by the time of the third. The report has the medians of the rounds.
func compare[Way any](b *testing.B, ways [3]Way, unit, first string, measure func(one Way, b *testing.B) (wall, cpu float64)) {
	for _, one := range ways {
		measure(one, b) // caches are filled
	}
	var walls, cpus compared
	for n := 0; b.Loop(); n++ {
		var wall, cpu [3]float64
		for i := range ways { // none is always the first
			at := (n + i) % len(ways)
			wall[at], cpu[at] = measure(ways[at], b)
		}
		walls, cpus = append(walls, wall), append(cpus, cpu)
	}
	b.ReportMetric(0, "ns/op")
	walls.report(b, unit, "", first)
	cpus.report(b, unit, "cpu-", first)
}

// compared has what was measured in each round.
type compared [][3]float64

func (c compared) report(b *testing.B, unit, what, first string) {
	if c[0][0] == 0 { // this kind of time was not measured
		return
	}
	var one, others, ratio, noise []float64
	for _, now := range c {
		one, others = append(one, now[0]), append(others, now[1], now[2])
		ratio, noise = append(ratio, 2*now[0]/(now[1]+now[2])), append(noise, now[1]/now[2])
	}
	b.ReportMetric(median(one), unit+"-"+what+first)
	b.ReportMetric(median(others), unit+"-"+what+"alone")
	b.ReportMetric(median(ratio), what+"ratio")
	b.ReportMetric(median(noise), what+"noise")
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

// benched is a way to use mcpx, with a session that stays open.
type benched struct {
	home   *home
	config string
	pid    int // the process that serves the session
	client *client
}

func newBenched(b *testing.B, h *home, servers map[string]server) *benched {
	one := &benched{home: h, config: h.config(b, servers, nil)}
	cmd := h.command(b, "--config", one.config)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p := startStdio(b, cmd)
	one.pid, one.client = p.cmd.Process.Pid, &client{peer: p, era: legacy, name: "e2e"}
	one.client.open(b)
	one.client.exec(b, "fake", "echo", `{"text":"up"}`)
	return one
}

// firstAnswer opens a session and ends it after the answer.
func (one *benched) firstAnswer(b *testing.B) (wall, _ float64) {
	cmd := one.home.command(b, "--config", one.config)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	if _, err := in.Write([]byte(hello + "\n")); err != nil {
		b.Fatal(err)
	}
	answer := make([]byte, 1)
	if _, err := out.Read(answer); err != nil {
		b.Fatal(err)
	}
	wall = float64(time.Since(began).Microseconds()) / 1e3
	in.Close()
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return wall, 0
}

// command makes a call with mcpx exec, and returns how long the command takes.
func (one *benched) command(b *testing.B) (wall, _ float64) {
	cmd := one.home.command(b, "--config", one.config, "exec", "fake", "echo", "text=hello")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "hello\n" {
		b.Fatalf("%v: %s", err, out)
	}
	return float64(time.Since(began).Microseconds()) / 1e3, 0
}

// calls makes many calls, by several callers at once, and returns the wall-clock time and the CPU time in all, divided by the
// number of calls, in µs.
func (one *benched) calls(b *testing.B, callers int) (wall, cpu float64) {
	each := 256
	if callers > 1 {
		each = 2048
	}
	before, began := cpuTime(b, one.pid), time.Now()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() { // ends with its calls
			for range each / callers {
				id := one.client.start(b, "tools/call", `{"name":"exec","arguments":`+execArgs("fake", "echo", `{"text":"hello"}`)+`}`, "")
				if m := one.client.answer(b, id); !strings.Contains(string(m.Result), "hello") {
					b.Errorf("got %s %s", m.Result, m.Error)
				}
			}
		})
	}
	all.Wait()
	wall, cpu = float64(time.Since(began).Nanoseconds())/1e3/float64(each), float64((cpuTime(b, one.pid)-before).Nanoseconds())/1e3/float64(each)
	return wall, cpu
}
