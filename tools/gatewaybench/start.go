package main

import (
	"context"
	"fmt"
	"time"
)

func startFigure() *figure {
	return &figure{name: "start", title: "First answers", varies: true,
		about: "From the start of the process with five servers of ten tools to the answer of tools/list, and to the first call " +
			"that one of " +
			"the servers answers. Cold: with an empty home folder. Warm: started again in the same one.",
		columns: []column{{"cold: tools/list", "ms", less}, {"cold: first call", "ms", less}, {"warm: tools/list", "ms", less},
			{"warm: first call", "ms", less}},
		run: (*bench).measureStart}
}

// roundsOfStarts returns how many rounds of starts, memory and faults are measured: at most three, since a start takes seconds.
func (b *bench) roundsOfStarts() int {
	if b.quick {
		return 1
	}
	return min(b.rounds, 3)
}

func (b *bench) measureStart(f *figure) {
	b.eachStart(f, func(ctx context.Context, p *peer, _ string, l *logFile) error {
		dir, err := b.startOnce(ctx, f, p, l, "")
		if err == nil {
			_, err = b.startOnce(ctx, f, p, l, dir)
		}
		return err
	})
}

// eachStart is like [bench.each], but measures for roundsOfStarts rounds. A peer that has failed is left out of the further rounds.
func (b *bench) eachStart(f *figure, measure func(ctx context.Context, p *peer, transport string, l *logFile) error) {
	out := map[string]bool{} // peers that have failed
	for range b.roundsOfStarts() {
		b.each(f, func(ctx context.Context, p *peer, transport string, l *logFile) error {
			if out[p.name] {
				return nil
			}
			err := measure(ctx, p, transport, l)
			out[p.name] = err != nil
			return err
		})
	}
}

// startOnce measures one start of a peer. If dir is empty, the start is cold: the peer gets a new home folder, which startOnce
// returns as filled. Otherwise the start is warm: dir is the home folder that an earlier start has filled.
func (b *bench) startOnce(ctx context.Context, f *figure, p *peer, l *logFile, dir string) (filled string, err error) {
	kind := "warm"
	if dir == "" {
		kind = "cold"
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", kind, err)
		}
	}()
	specs := b.toolServers(50, 5)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	from := time.Now()
	since := func() float64 { return float64(time.Since(from).Microseconds()) / 1000 }
	t, err := b.start(p, p.transports[0], dir, specs, l)
	if err != nil {
		return "", err
	}
	defer t.stop()
	if _, err := t.surface(ctx, names(specs)); err != nil {
		return "", err
	}
	listed := since()
	if err := t.ready(ctx, "srv4"); err != nil {
		return "", err
	}
	b.add(f, kind+": tools/list", p, t.transport, listed)
	b.add(f, kind+": first call", p, t.transport, since())
	return t.dir, nil
}

func memoryFigure() *figure {
	return &figure{name: "memory", title: "Memory", varies: true,
		about: "Memory (PSS) of the gateway's own processes a second and a half after one server has answered a call and tools/list " +
			"no longer changes: 10 tools of two servers, 500 " +
			"tools of ten, and these with 20 sessions over HTTP, each of which has read tools/list. Direct's is the servers' own.",
		columns: []column{{"10 tools", "MB", less}, {"500 tools", "MB", less}, {"500 tools, HTTP", "MB", less}, {"and 20 sessions",
			"MB", less}},
		run: (*bench).measureMemory}
}

func (b *bench) measureMemory(f *figure) {
	b.eachStart(f, func(ctx context.Context, p *peer, transport string, l *logFile) error {
		return b.memoryOf(ctx, f, p, transport, l)
	})
}

func (b *bench) memoryOf(ctx context.Context, f *figure, p *peer, transport string, l *logFile) error {
	add := func(column string, n int64) { b.add(f, column, p, transport, float64(n)/(1<<20)) }
	// with returns the memory of the peer after its start. If sessions is not 0, a second value is its memory with this many
	// open sessions.
	with := func(transport string, specs []serverSpec, sessions int) (used []int64, err error) {
		t, err := b.start(p, transport, "", specs, l)
		if err != nil {
			return nil, err
		}
		defer t.stop()
		return t.memory(ctx, names(specs), sessions)
	}
	small, err := with(transport, b.toolServers(10, 2), 0)
	if err != nil {
		return err
	}
	add("10 tools", small[0])
	specs := b.toolServers(500, 10)
	if transport == overStdio {
		large, err := with(transport, specs, 0)
		if err != nil {
			return err
		}
		add("500 tools", large[0])
	} else {
		b.mark(f, p, transport, cell{State: notOffered}, "500 tools")
	}
	if !p.has(overHTTP) {
		b.mark(f, p, transport, cell{State: notOffered}, "500 tools, HTTP", "and 20 sessions")
		return nil
	}
	many, err := with(overHTTP, specs, 20)
	if err != nil {
		return err
	}
	add("500 tools, HTTP", many[0])
	add("and 20 sessions", many[1])
	return nil
}

// memory returns how much memory a gateway uses soon after its start. If sessions is not 0, memory then opens this many sessions,
// and also returns how much the gateway uses with them. If each server has an endpoint of its own, memory opens this many
// sessions with each.
func (t *target) memory(ctx context.Context, servers []string, sessions int) (used []int64, err error) {
	const settle = 1500 * time.Millisecond
	if err := t.settled(ctx, servers); err != nil {
		return nil, err
	}
	time.Sleep(settle)
	used = append(used, useOf(t.pids()...).memory)
	if sessions == 0 {
		return used, nil
	}
	if t.key(servers[0]) == "" { // one endpoint for all servers
		servers = servers[:1]
	}
	for range sessions {
		for _, server := range servers {
			s, _, err := t.dial(ctx, server)
			if err == nil {
				_, err = listTools(ctx, s)
			}
			if err != nil {
				return nil, err
			}
			defer s.close()
		}
	}
	time.Sleep(settle)
	return append(used, useOf(t.pids()...).memory), nil
}
