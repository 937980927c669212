package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

func loadFigure() *figure {
	return &figure{name: "load", title: "Calls", varies: true,
		about: "A call of echo, on one of two servers. Added is p50 or p99 less direct's of the same round. CPU is the time of the " +
			"gateway's own " +
			"processes a call, with 64 callers (over HTTP in 8 sessions). 1 MB is the time of one result: rows of JSON, and lines that " +
			"are no JSON.",
		columns: []column{{"1 caller p50", "µs", less}, {"p99", "µs", less}, {"added p50", "µs", less}, {"added p99", "µs", less},
			{"calls/s, 1 caller", "", more}, {"64 callers, calls/s", "", more}, {"p99, 64 callers", "ms", less}, {"CPU a call", "µs",
				less},
			{"1 MB JSON", "ms", less}, {"1 MB text", "ms", less}},
		run: (*bench).measureLoad}
}

func (b *bench) measureLoad(f *figure) {
	specs := []serverSpec{loadServer("one"), loadServer("two")}
	for _, transport := range both {
		var running []*target
		for _, p := range b.peers {
			if b.ctx.Err() != nil {
				b.mark(f, p, transport, cell{State: noTime})
			} else if t := b.startForLoad(f, p, transport, specs); t != nil {
				running = append(running, t)
			}
		}
		for round := range b.rounds {
			base := map[string]float64{}
			for _, t := range running {
				if b.ctx.Err() != nil {
					break
				}
				if err := b.loadRound(f, t, base); err != nil {
					t.log.note("round %d: %v", round, err)
					b.fail(f, t.peer, transport, err)
				}
			}
		}
		for _, t := range running {
			t.stop()
			_ = t.log.file.Close()
		}
	}
}

// loadServer makes a server that also has tools with results of about 1 MB.
func loadServer(name string) serverSpec {
	var rows strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&rows, `,{"id":%d,"name":"user-%06d","email":"user%06d@example.org","active":%t,`+
			`"balance":%d.25,"note":"row of a table"}`, i, i, i, i%3 == 0, i*7919%100000)
	}
	text := strings.Repeat("12:00:00 worker 3 finished job 000123 after 45 ms, nothing left to do\n", 15000)
	empty := `,"description":"Returns a large text.","inputSchema":{"type":"object","properties":{}}}`
	return serverSpec{Name: name,
		Tools: []json.RawMessage{json.RawMessage(`{"name":"json_mb"` + empty), json.RawMessage(`{"name":"text_mb"` + empty)},
		Results: map[string]json.RawMessage{
			"json_mb": json.RawMessage(textResult(`{"rows":[` + rows.String()[1:] + `],"end":"the-end-of-it"}`)),
			"text_mb": json.RawMessage(textResult(text + "the-end-of-it")),
		}}
}

func (b *bench) startForLoad(f *figure, p *peer, transport string, specs []serverSpec) *target {
	l := b.logFor(f.name, p, transport)
	if !p.has(transport) {
		b.mark(f, p, transport, cell{State: notOffered})
		return nil
	}
	err := b.usable(p)
	var t *target
	if err == nil {
		t, err = b.start(p, transport, "", specs, l)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
		defer cancel()
		if err = t.ready(ctx, "one"); err == nil {
			err = t.warm(ctx)
		}
		if err == nil {
			return t
		}
		t.stop()
	}
	l.note("failed: %v", err)
	b.fail(f, p, transport, err)
	return nil
}

// warm calls echo for half a second, so that compilers and caches of the gateway are warm.
func (t *target) warm(ctx context.Context) error {
	for begin := time.Now(); time.Since(begin) < 500*time.Millisecond; {
		if err := t.echo(ctx, "one"); err != nil {
			return err
		}
	}
	return nil
}

// loadRound measures a target once. base has the latencies of the peer called direct, a client without a gateway, in the same
// round. direct is measured first, and then loadRound sets base.
func (b *bench) loadRound(f *figure, t *target, base map[string]float64) error {
	alone, many := 600*time.Millisecond, time.Second
	if b.quick {
		alone, many = 300*time.Millisecond, 500*time.Millisecond
	}
	add := func(column string, value float64) { b.add(f, column, t.peer, t.transport, value) }
	one, err := t.load(b.ctx, 1, alone)
	if err != nil {
		return fmt.Errorf("1 caller: %w", err)
	}
	for name, share := range map[string]float64{"1 caller p50": 0.5, "p99": 0.99} {
		value := percentile(one.micros, share)
		add(name, value)
		short := name[strings.LastIndex(name, "p"):]
		if t.peer.name == "direct" {
			base[short] = value
		} else if direct, ok := base[short]; ok {
			add("added "+short, value-direct)
		}
	}
	add("calls/s, 1 caller", one.rate())
	before := useOf(t.pids()...)
	all, err := t.load(b.ctx, 64, many)
	if err != nil {
		return fmt.Errorf("64 callers: %w", err)
	}
	if t.peer.name != "direct" {
		add("CPU a call", float64((useOf(t.pids()...).cpu-before.cpu).Microseconds())/float64(len(all.micros)))
	}
	add("64 callers, calls/s", all.rate())
	add("p99, 64 callers", percentile(all.micros, 0.99)/1000)
	for name, tool := range map[string]string{"1 MB JSON": "json_mb", "1 MB text": "text_mb"} {
		value, err := t.large(b.ctx, tool)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		add(name, value)
	}
	return nil
}

// loaded is what the callers of one measurement saw.
type loaded struct {
	micros  []float64 // microseconds of each answered call
	elapsed time.Duration
}

func (l loaded) rate() float64 { return float64(len(l.micros)) / l.elapsed.Seconds() }

// stragglers is how long after the end of a measurement the bench still waits for the answers to its last calls.
const stragglers = 4 * time.Second

// load lets several callers call echo for the duration length. Each call has a text of its own, which must be in the answer. If a
// call fails, load returns an error. If a call only takes too long, load leaves it out, and the caller of this call makes no more
// calls. So a slow gateway is measured by the calls that it answered.
func (t *target) load(ctx context.Context, callers int, length time.Duration) (l loaded, err error) {
	sessions, err := t.sessionsFor(ctx, callers)
	if err != nil {
		return l, err
	}
	ctx, cancel := context.WithTimeout(ctx, length+stragglers)
	defer cancel()
	results, errs := make([][]float64, callers), make([]error, callers)
	begin := time.Now()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			s := sessions[i%len(sessions)]
			for n := 0; time.Since(begin) < length; n++ {
				text := fmt.Sprintf("call-%d-%d-end", i, n)
				from := time.Now()
				answer, err := s.send(ctx, "tools/call", t.params("one", "echo", `{"text":"`+text+`"}`))
				if err == nil && !strings.Contains(string(answer), text) {
					err = fmt.Errorf("the answer to %s is %s", text, clip(string(answer), 300))
				}
				if err != nil {
					errs[i] = err
					return
				}
				results[i] = append(results[i], float64(time.Since(from).Nanoseconds())/1000)
			}
		})
	}
	all.Wait()
	l.elapsed = time.Since(begin)
	for i := range callers {
		l.micros = append(l.micros, results[i]...)
		if errs[i] != nil && !errors.Is(errs[i], context.DeadlineExceeded) && !strings.Contains(errs[i].Error(), "timeout") {
			err = errs[i]
		}
	}
	if err == nil && len(l.micros) == 0 {
		err = fmt.Errorf("no call of %d callers was answered in %s", callers, length+stragglers)
	}
	return l, err
}

// sessionsFor returns the sessions that the callers share: one session over stdio or for one caller, otherwise eight sessions
// over HTTP.
func (t *target) sessionsFor(ctx context.Context, callers int) ([]session, error) {
	first, err := t.session(ctx, "one")
	if err != nil || t.transport == overStdio || callers == 1 {
		return []session{first}, err
	}
	all := []session{first}
	for len(all) < 8 {
		name := fmt.Sprintf("load %d", len(all))
		if s := t.sessions[name]; s != nil { // opened in an earlier round
			all = append(all, s)
			continue
		}
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		s, _, err := t.dial(limited, "one")
		cancel()
		if err != nil {
			return nil, err
		}
		t.sessions[name] = s
		all = append(all, s)
	}
	return all, nil
}

// large returns how many milliseconds a large result takes: the shorter time of two calls.
func (t *target) large(ctx context.Context, tool string) (millis float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for range 2 {
		from := time.Now()
		answer, err := t.call(ctx, "one", tool, `{}`)
		took := float64(time.Since(from).Microseconds()) / 1000
		if err != nil {
			return 0, err
		}
		if !strings.Contains(string(answer), "the-end-of-it") {
			return 0, fmt.Errorf("the answer is not whole: %d bytes, %s", len(answer), clip(string(answer), 200))
		}
		if millis == 0 || took < millis {
			millis = took
		}
	}
	return millis, nil
}
