package statetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/state"
)

// Counters tests an implementation of [state.Counters]. extra is how many tokens more or fewer than the burst several processes
// together may take, because each may take some in advance; it is 0 for counters in memory. For doors, see the package comment.
func Counters(t *testing.T, extra int, doors func(t *testing.T) (here, there state.Counters)) {
	for name, test := range map[string]func(*testing.T, state.Counters){
		"a burst": countBurst, "all or none": countAllOrNone, "only asked": countAsked, "debts": countDebts, "another flow": countFlow,
	} {
		t.Run(name, func(t *testing.T) {
			here, _ := doors(t)
			test(t, here)
		})
	}
	t.Run("many at once", func(t *testing.T) {
		here, there := doors(t)
		countMany(t, extra, here, there)
	})
}

// slow is a rate so low that no token is added while a test runs.
var slow = state.Flow{Rate: 1e-6, Burst: 10}

func draw(what, whose string, tokens float64) state.Draw {
	return state.Draw{What: what, Whose: whose, Flow: slow, Tokens: tokens}
}

// takes takes tokens from a bucket, one at a time, until there are none or it has 1000. It returns how many it took.
func takes(c state.Counters, d state.Draw) (n int) {
	d.Tokens = 1
	for short := -1; n < 1000; n++ {
		if short, _ = c.Take([]state.Draw{d}); short >= 0 {
			return n
		}
	}
	return n
}

func countBurst(t *testing.T, c state.Counters) {
	if n := takes(c, draw("calls", "a", 1)); n != 10 {
		t.Errorf("%d tokens of a burst of 10", n)
	}
	short, wait := c.Take([]state.Draw{draw("calls", "a", 1)})
	if short != 0 || wait < 9e5*time.Second || wait > 1e6*time.Second {
		t.Errorf("short %d, to wait %v", short, wait)
	}
	for _, other := range []state.Draw{draw("calls", "b", 1), draw("bytes", "a", 1), draw("calls", "", 1)} {
		if n := takes(c, other); n != 10 {
			t.Errorf("%s of %q: %d tokens", other.What, other.Whose, n)
		}
	}
	unbounded := state.Draw{What: "calls", Whose: "c", Tokens: 1}
	if n := takes(c, unbounded); n != 1000 {
		t.Errorf("%d tokens without a rate", n)
	}
	if short, wait := c.Take(nil); short != -1 || wait != 0 {
		t.Errorf("nothing at all: %d, %v", short, wait)
	}
}

// countAllOrNone: if one bucket is empty, nothing is taken from the others, and Take returns the index of the first
// empty one.
func countAllOrNone(t *testing.T, c state.Counters) {
	takes(c, draw("calls", "empty", 1))
	takes(c, draw("bytes", "empty", 1))
	both := []state.Draw{draw("calls", "a", 1), draw("calls", "empty", 1), draw("bytes", "empty", 1), draw("calls", "b", 1)}
	for range 5 {
		if short, wait := c.Take(both); short != 1 || wait <= 0 {
			t.Fatalf("short %d, to wait %v", short, wait)
		}
	}
	if a, b := takes(c, both[0]), takes(c, both[3]); a != 10 || b != 10 {
		t.Errorf("%d and %d tokens are left of 10", a, b)
	}
}

func countAsked(t *testing.T, c state.Counters) {
	for range 30 {
		if short, _ := c.Take([]state.Draw{draw("bytes", "a", 0)}); short != -1 {
			t.Fatal("who only asks takes tokens")
		}
	}
	takes(c, draw("bytes", "a", 1))
	if short, wait := c.Take([]state.Draw{draw("bytes", "a", 0)}); short != 0 || wait <= 0 {
		t.Errorf("of an empty bucket: short %d, to wait %v", short, wait)
	}
}

func countDebts(t *testing.T, c state.Counters) {
	c.Charge([]state.Draw{draw("bytes", "a", 25), draw("bytes", "b", 4), draw("bytes", "c", 4)})
	if short, wait := c.Take([]state.Draw{draw("bytes", "a", 0)}); short != 0 || wait < 15e6*time.Second || wait > 16e6*time.Second {
		t.Errorf("short %d, to wait %v for 16 tokens", short, wait)
	}
	if n := takes(c, draw("bytes", "b", 1)); n != 6 {
		t.Errorf("%d tokens are left of 10", n)
	}
	c.Charge([]state.Draw{draw("bytes", "c", -1)})
	if n := takes(c, draw("bytes", "c", 1)); n != 7 {
		t.Errorf("%d tokens are left when one was given back", n)
	}
	c.Charge([]state.Draw{draw("bytes", "d", -5)})
	if n := takes(c, draw("bytes", "d", 1)); n != 10 {
		t.Errorf("%d tokens in a bucket of 10 that was full", n)
	}
}

func countFlow(t *testing.T, c state.Counters) {
	takes(c, draw("calls", "a", 1))
	other := draw("calls", "a", 1)
	other.Flow.Burst = 3
	if n := takes(c, other); n != 3 {
		t.Errorf("%d tokens of another flow with a burst of 3", n)
	}
}

func countMany(t *testing.T, more int, here, there state.Counters) {
	const most = 500
	wide := state.Flow{Rate: 1e-6, Burst: most}
	var passed atomic.Int32
	var all sync.WaitGroup
	for _, c := range []state.Counters{here, there, here, there} {
		all.Go(func() {
			for range most {
				if short, _ := c.Take([]state.Draw{
					{What: "calls", Whose: "a", Flow: wide, Tokens: 1}, {What: "calls", Whose: "all", Flow: wide, Tokens: 1},
				}); short < 0 {
					passed.Add(1)
				}
				c.Charge([]state.Draw{{What: "bytes", Whose: "a", Flow: wide, Tokens: 1}})
			}
		})
	}
	all.Wait()
	if n := int(passed.Load()); n < most-more || n > most+more {
		t.Errorf("%d passed, want %d", n, most)
	}
}
