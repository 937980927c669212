package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/mcptest"
)

// TestCounters_Three: if callers ask for more calls than the limit permits, three replicas together admit about as many as one
// replica would (see the comment of the type counters). This holds also while NATS is down, and after it is back.
func TestCounters_Three(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	var all []*Cluster
	var doors []state.Counters
	for i := range 3 {
		all = append(all, join(t, n.URL, fmt.Sprint(i)))
		doors = append(doors, all[i].NewCounters(state.NewCounters(100)))
	}
	meet(t, all...)
	const rate, burst = 200, 20
	draw := state.Draw{What: "calls", Whose: "alice", Flow: state.Flow{Rate: rate, Burst: burst}, Tokens: 1}
	measure := func(when string, least float64) {
		t.Helper()
		var admitted atomic.Int64
		var callers sync.WaitGroup
		began := time.Now()
		for _, c := range doors {
			callers.Go(func() {
				ticks := time.NewTicker(time.Millisecond)
				defer ticks.Stop()
				for time.Since(began) < 2*time.Second {
					<-ticks.C
					if short, _ := c.Take([]state.Draw{draw}); short < 0 {
						admitted.Add(1)
					}
				}
			})
		}
		callers.Wait()
		should := rate*time.Since(began).Seconds() + burst
		got := float64(admitted.Load())
		t.Logf("%s: %.0f admitted, one replica admits %.0f: %+.1f %%", when, got, should, 100*(got-should)/should)
		if got > should*1.25+2*burst || got < should*least {
			t.Errorf("%s: %.0f are admitted, one replica admits %.0f", when, got, should)
		}
	}
	connected := func(want bool) {
		mcptest.WaitFor(t, fmt.Sprint("connected: ", want), wait, func() bool {
			return all[0].Connected() == want && all[1].Connected() == want && all[2].Connected() == want
		})
	}
	measure("with NATS", 0.7)
	n.Kill()
	connected(false)
	measure("without NATS", 0.7)
	n.Start()
	connected(true)
	measure("with NATS again", 0.7)
}

// TestCounters_Flows: two replicas have different limits for the same principal, as during a reload. The calls that one replica
// admits neither fill the bucket of the other nor change the limit of the other.
func TestCounters_Flows(t *testing.T) {
	mcptest.NoLeaks(t)
	here, there := two(t)
	a, b := here.NewCounters(state.NewCounters(100)), there.NewCounters(state.NewCounters(100))
	draw := func(burst float64) []state.Draw {
		return []state.Draw{{What: "calls", Whose: "alice", Flow: state.Flow{Rate: 1e-6, Burst: burst}, Tokens: 1}}
	}
	takes := func(c state.Counters, burst float64) (n int) {
		for short := -1; ; n++ {
			if short, _ = c.Take(draw(burst)); short >= 0 {
				return n
			}
		}
	}
	if n := takes(b, 5); n != 5 {
		t.Fatalf("%d of 5", n)
	}
	local := a.(*counters).Counters
	mcptest.WaitFor(t, "a knows", wait, func() bool { // a's bucket is empty too; a draw of 0 tokens asks without taking any
		d := draw(5)
		d[0].Tokens = 0
		short, _ := local.Take(d)
		return short == 0
	})
	a.Charge(draw(9))
	if n := takes(a, 9); n != 8 { // with another limit, a's bucket was full again before the Charge
		t.Errorf("%d of 9", n)
	}
	mcptest.WaitFor(t, "what a has taken is sent", wait, func() bool { s := a.(*counters); s.mu.Lock(); defer s.mu.Unlock(); return len(s.pending) == 0 })
	for range 100 {
		if n := takes(b, 5); n != 0 {
			t.Errorf("another's takes fill the bucket: %d", n)
		}
	}
}

// TestCounters_Start: a replica that starts learns how many tokens are missing from the buckets of the others.
func TestCounters_Start(t *testing.T) {
	mcptest.NoLeaks(t)
	here, there := two(t)
	a := here.NewCounters(state.NewCounters(10_000))
	there.NewCounters(state.NewCounters(10_000))
	draw := func(whose string) []state.Draw {
		return []state.Draw{{What: "calls", Whose: whose, Flow: state.Flow{Rate: 1e-6, Burst: 100}, Tokens: 1}}
	}
	takes := func(c state.Counters, whose string) (n int) {
		for short := -1; ; n++ {
			if short, _ = c.Take(draw(whose)); short >= 0 {
				return n
			}
		}
	}
	takes(a, "alice")
	for i := range 5_000 { // more buckets than fit into one message
		a.Take(draw(fmt.Sprint(i)))
	}
	server := "nats://" + here.conn.ConnectedAddr()
	began := time.Now()
	late := join(t, server, "late").NewCounters(state.NewCounters(10_000))
	mcptest.WaitFor(t, "the late replica knows", wait, func() bool { return len(late.Taken()) == 5_001 })
	t.Logf("it knows after %v", time.Since(began))
	if n := takes(late, "alice"); n != 0 {
		t.Errorf("%d more calls of alice", n)
	}
	if n := takes(late, "bob"); n != 100 {
		t.Errorf("%d calls of a new caller", n)
	}
}

// held is either a result with a text or, if calls is true, a call that is still running.
type held struct {
	text  string
	calls bool
}

func (h *held) MarshalJSON() ([]byte, error) {
	if h.calls {
		return []byte("null"), nil
	}
	return json.Marshal(h.text)
}

func (h *held) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &h.text) }

// withResults returns two replicas that know each other, and the results of each.
func withResults(t *testing.T, n *mcptest.NATS) (a, b *Cluster, here, there state.Results[held]) {
	t.Helper()
	a, b = join(t, n.URL, "a"), join(t, n.URL, "b")
	here = NewResults(a, state.NewResults[held](1<<30, time.Hour))
	there = NewResults(b, state.NewResults[held](1<<30, time.Hour))
	meet(t, a, b)
	return a, b, here, there
}

// TestResults: another replica gets a large result whole, and can read its copy even without NATS. For a call that is still
// running it gets ErrElsewhere. When a replica ends, its results are lost.
func TestResults(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	a, b, here, there := withResults(t, n)
	large := strings.Repeat("x", 2*pieces*maxPiece)
	handle, call := here.Keep("alice", &held{text: large}, 10), here.Keep("alice", &held{calls: true}, 10)
	later := here.Keep("alice", &held{text: "later"}, 10)
	got, err := there.Get(t.Context(), handle, "alice")
	if err != nil || got.text != large {
		t.Errorf("%d bytes: %v", len(large), err)
	}
	if _, err := there.Get(t.Context(), handle, "bob"); !errors.Is(err, state.ErrUnknown) {
		t.Errorf("bob gets a copy: %v", err)
	}
	if _, err := there.Get(t.Context(), call, "alice"); !errors.Is(err, state.ErrElsewhere) {
		t.Errorf("a call: %v", err)
	}
	n.Kill()
	mcptest.WaitFor(t, "b notices", wait, func() bool { return !b.Connected() })
	if again, err := there.Get(t.Context(), handle, "alice"); err != nil || again != got {
		t.Errorf("a copy without NATS: %v", err)
	}
	if _, err := there.Get(t.Context(), later, "alice"); !errors.Is(err, state.ErrAway) {
		t.Errorf("without NATS: %v", err)
	}
	n.Start()
	mcptest.WaitFor(t, "it is there again", wait, func() bool { r, err := there.Get(t.Context(), later, "alice"); return err == nil && r.text == "later" })
	a.Close()
	if _, err := there.Get(t.Context(), call, "alice"); !errors.Is(err, state.ErrUnknown) {
		t.Errorf("of a replica that has ended: %v", err)
	}
}

// TestResults_Huge: another replica does not get a result of more than maxResult bytes.
func TestResults_Huge(t *testing.T) {
	if mcptest.Race {
		t.Skip("64 MB need seconds there, and smaller results go the same way")
	}
	mcptest.NoLeaks(t)
	_, _, here, there := withResults(t, mcptest.StartNATS(t))
	huge := here.Keep("alice", &held{text: strings.Repeat("x", maxResult)}, 10)
	if _, err := there.Get(t.Context(), huge, "alice"); !errors.Is(err, state.ErrUnknown) {
		t.Errorf("more than the bound: %v", err)
	}
}

// TestSealed_Nonces: the same text is never encrypted to the same bytes, neither twice in one box nor in two boxes with the same
// secret. The encrypted text does not contain the text.
func TestSealed_Nonces(t *testing.T) {
	one, two := newBox([]*state.Secret{secret}), newBox([]*state.Secret{secret})
	a, b, c := one.seal("s", []byte("text")), one.seal("s", []byte("text")), two.seal("s", []byte("text"))
	if bytes.Equal(a[sealHead:], b[sealHead:]) || bytes.Equal(a[sealHead:], c[sealHead:]) || bytes.Contains(a, []byte("text")) {
		t.Error("a text is sealed twice in the same way")
	}
	for _, sealed := range [][]byte{a, b, c} {
		for i := range sealed {
			forged := bytes.Clone(sealed)
			forged[i] ^= 1
			if _, _, _, err := two.open("s", forged); err == nil {
				t.Errorf("with another byte %d it opens", i)
			}
		}
		if text, _, _, err := two.open("s", sealed); err != nil || string(text) != "text" {
			t.Error(err)
		}
	}
}
