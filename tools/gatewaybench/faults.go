package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/base/wire"
)

// neighbour is the name of the healthy server that runs beside the one with the fault.
const neighbour = "well"

func faultsFigure() *figure {
	return &figure{name: "faults", title: "Faults survived", wide: true, varies: true,
		about: "One of two servers has the fault. Killed: seconds until it answers again after a SIGKILL, at most 10. Hangs: a call " +
			"of it never ends; the other server answers within 2 s. Garbage: lines on stdout that are no messages. 100 MB: a result of " +
			"one line; what its caller got, after how many seconds, and whether the other server answers then. Storm: 1,000 " +
			"list_changed a second for 3 s; the slowest of the other server's answers meanwhile. Direct shows what the client itself " +
			"would see.",
		columns: []column{{"killed: back after", "s", less}, {"killed: neighbour", "", ""}, {"hangs: neighbour", "", ""},
			{"garbage", "", ""}, {"100 MB: caller", "", ""}, {"100 MB: after", "s", ""},
			{"100 MB: neighbour", "", ""}, {"100 MB: memory", "MB", less}, {"storm: slowest", "ms", less}},
		run: (*bench).measureFaults}
}

// fault is what goes wrong with one of two servers.
type fault struct {
	name string // how the names of its columns begin
	spec serverSpec
	run  func(ctx context.Context, b *bench, f *figure, t *target) error
}

func (b *bench) measureFaults(f *figure) {
	faults := []fault{
		{"killed", serverSpec{}, killed},
		{"hangs", serverSpec{}, hangs},
		{"garbage", serverSpec{Noise: true}, garbage},
		{"100 MB", serverSpec{}, huge},
		{"storm", serverSpec{Storm: 1000}, storm},
	}
	for range b.roundsOfStarts() {
		b.each(f, func(ctx context.Context, p *peer, transport string, l *logFile) error {
			for _, fault := range faults {
				l.note("== %s", fault.name)
				err := b.measureFault(ctx, f, p, l, fault)
				if err == nil {
					continue
				}
				l.note("%s: %v", fault.name, err)
				for _, c := range f.columns {
					if strings.HasPrefix(c.name, fault.name) {
						b.fail(f, p, transport, err, c.name)
					}
				}
			}
			return nil
		})
	}
}

func (b *bench) measureFault(ctx context.Context, f *figure, p *peer, l *logFile, fault fault) error {
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	spec := fault.spec
	spec.Name = "ill"
	for _, name := range []string{"hang", "huge", "storm"} {
		spec.Tools = append(spec.Tools, wire.Encode(map[string]any{"name": name, "description": "Has a fault.",
			"inputSchema": map[string]any{"type": "object", "properties": map[string]any{}}}))
	}
	t, err := b.start(p, p.transports[0], "", []serverSpec{spec, {Name: neighbour}}, l)
	if err != nil {
		return err
	}
	defer t.stop()
	for _, name := range []string{"ill", neighbour} {
		limited, cancel := context.WithTimeout(ctx, 15*time.Second)
		err := t.ready(limited, name)
		cancel()
		if err != nil {
			return err
		}
	}
	return fault.run(ctx, b, f, t)
}

// neighbourAnswers returns in words whether the healthy server answers within two seconds.
func (t *target) neighbourAnswers(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := t.echo(ctx, neighbour); err != nil {
		t.log.note("the neighbour: %v", err)
		return "no answer"
	}
	return "answers"
}

// digits finds the id of a process in a result, even if a gateway has put the result into an object of its own.
var digits = regexp.MustCompile(`\d+`)

// killed kills the process of the server, and measures how long calls to the server fail. Some gateways run a process of their
// own for each server, which may end with the server. The bench does not start that process again.
func killed(ctx context.Context, b *bench, f *figure, t *target) error {
	result, err := t.call(ctx, "ill", "pid", `{}`)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(digits.FindString(seenByModel(result)))
	if err != nil {
		return fmt.Errorf("the id of the server is %q", seenByModel(result))
	}
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Kill()
	}
	if errors.Is(err, os.ErrProcessDone) {
		b.word(f, "killed: neighbour", t.peer, t.transport, t.neighbourAnswers(ctx))
		b.word(f, "killed: back after", t.peer, t.transport, "a process for each call")
		return nil
	}
	if err != nil {
		return err
	}
	from := time.Now()
	b.word(f, "killed: neighbour", t.peer, t.transport, t.neighbourAnswers(ctx))
	if t.peer.remote {
		b.word(f, "killed: back after", t.peer, t.transport, "starts no servers")
		return nil
	}
	back := false
	for !back && time.Since(from) < 10*time.Second && !errors.Is(err, errGone) {
		limited, cancel := context.WithTimeout(ctx, time.Second)
		err = t.echo(limited, "ill")
		cancel()
		if back = err == nil; !back {
			t.log.note("after %s: %v", time.Since(from).Round(time.Millisecond), err)
			time.Sleep(20 * time.Millisecond)
		}
	}
	if !back {
		b.word(f, "killed: back after", t.peer, t.transport, "not in 10 s")
		return nil
	}
	b.add(f, "killed: back after", t.peer, t.transport, time.Since(from).Seconds())
	return nil
}

func hangs(ctx context.Context, b *bench, f *figure, t *target) error {
	held, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := make(chan struct{})
	go func() { // ends when held ends
		close(begun)
		_, _ = t.call(held, "ill", "hang", `{}`)
	}()
	<-begun
	time.Sleep(200 * time.Millisecond) // time for the call to arrive at the server, which nothing reports
	b.word(f, "hangs: neighbour", t.peer, t.transport, t.neighbourAnswers(ctx))
	return nil
}

func garbage(ctx context.Context, b *bench, f *figure, t *target) error {
	for range 20 {
		if err := t.echo(ctx, "ill"); err != nil {
			return err
		}
	}
	b.word(f, "garbage", t.peer, t.transport, "survived")
	return nil
}

func huge(ctx context.Context, b *bench, f *figure, t *target) error {
	limited, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	peak, done := int64(0), make(chan struct{})
	watched := make(chan struct{})
	go func() { // ends with the call
		defer close(watched)
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
				peak = max(peak, useOf(t.pids()...).memory)
			}
		}
	}()
	from := time.Now()
	result, err := t.call(limited, "ill", "huge", `{}`)
	close(done)
	<-watched
	after := time.Since(from)
	t.log.note("%d bytes: %s %v", len(result), clip(string(result), 400), err)
	word := "an error"
	switch {
	case len(result) > 100<<20:
		word = "the result"
	case errors.Is(err, context.DeadlineExceeded) || err != nil && strings.Contains(err.Error(), "timeout"):
		word = "nothing in 20 s"
	case err == nil && string(wire.Member(result, "isError")) != "true":
		word = fmt.Sprintf("%d bytes", len(result))
	}
	b.add(f, "100 MB: after", t.peer, t.transport, after.Seconds())
	b.word(f, "100 MB: caller", t.peer, t.transport, word)
	b.word(f, "100 MB: neighbour", t.peer, t.transport, t.neighbourAnswers(ctx))
	if peak > 0 {
		b.add(f, "100 MB: memory", t.peer, t.transport, float64(peak)/(1<<20))
	}
	return nil
}

func storm(ctx context.Context, b *bench, f *figure, t *target) error {
	if _, err := t.call(ctx, "ill", "storm", `{}`); err != nil {
		return err
	}
	slowest := time.Duration(0)
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		from := time.Now()
		limited, cancel := context.WithTimeout(ctx, 3*time.Second)
		err := t.echo(limited, neighbour)
		cancel()
		if err != nil {
			return err
		}
		slowest = max(slowest, time.Since(from))
	}
	b.add(f, "storm: slowest", t.peer, t.transport, float64(slowest.Microseconds())/1000)
	return nil
}
