package state

import (
	"sync"
	"time"

	"mcpx/internal/base/lru"
)

// Bucket is a token bucket whose number of tokens can be negative. The zero value is full. It is not safe for
// concurrent use.
type Bucket struct {
	taken float64   // how many tokens were missing in the bucket at the time last
	last  time.Time // zero if the bucket was never used
}

// Flow says how a bucket fills: it gets Rate tokens a second until it has Burst tokens. If Rate is 0, there is no limit.
type Flow struct{ Rate, Burst float64 }

// Wait returns the time until the bucket has a whole token, or 0 if it has one.
func (b *Bucket) Wait(now time.Time, f Flow) time.Duration {
	if f.Rate <= 0 {
		return 0
	}
	b.fill(now, f)
	missing := b.taken + 1 - max(f.Burst, 1)
	if missing <= 0 {
		return 0
	}
	return max(time.Duration(missing/f.Rate*float64(time.Second)), 1)
}

// Take takes n tokens, even if the bucket has fewer. A negative n gives tokens back, but no more than fit into the bucket.
func (b *Bucket) Take(now time.Time, f Flow, n float64) {
	if f.Rate > 0 {
		b.fill(now, f)
		b.taken = max(0, b.taken+n)
	}
}

func (b *Bucket) fill(now time.Time, f Flow) {
	if since := now.Sub(b.last); since > 0 {
		b.taken = max(0, b.taken-since.Seconds()*f.Rate)
		b.last = now
	}
}

// counters implement [Counters] in memory.
type counters struct {
	size int
	mu   sync.Mutex
	kept []keptCounters // one for each Draw.What, which has only a few values
}

// keptCounters are the buckets with the same Draw.What, by Draw.Whose.
type keptCounters struct {
	what string
	of   *lru.Map[string, counter]
}

type counter struct {
	flow Flow // the Flow with which the bucket was last used
	Bucket
}

// NewCounters returns Counters in memory. For each Draw.What they always keep the buckets that were used last, as many as size
// says. They never keep more than about twice as many.
func NewCounters(size int) Counters { return &counters{size: size} }

// find returns the bucket of a draw. If the bucket was last used with another Flow, it is full again. But for a Remote draw, the
// bucket keeps its Flow and its tokens. The caller holds the lock while it uses the bucket.
func (c *counters) find(d *Draw) *Bucket {
	one := c.of(d.What).Get(d.Whose)
	if one.flow != d.Flow {
		if d.Remote && one.flow != (Flow{}) {
			d.Flow = one.flow
		} else {
			*one = counter{flow: d.Flow}
		}
	}
	return &one.Bucket
}

func (c *counters) of(what string) *lru.Map[string, counter] {
	for i := range c.kept {
		if c.kept[i].what == what {
			return c.kept[i].of
		}
	}
	of := lru.New[string, counter](c.size, nil)
	c.kept = append(c.kept, keptCounters{what, of})
	return of
}

// Take takes the tokens from all buckets, or from none if any bucket lacks a whole token.
func (c *counters) Take(from []Draw) (short int, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for i := range from {
		d := &from[i]
		d.bucket = c.find(d)
		if wait := d.bucket.Wait(now, d.Flow); wait > 0 { // no bucket has lost a token yet
			return i, wait
		}
	}
	for i := range from {
		from[i].take(now)
	}
	return -1, 0
}

// Charge takes the tokens even from buckets that have too few.
func (c *counters) Charge(to []Draw) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for i := range to {
		to[i].bucket = c.find(&to[i])
		to[i].take(now)
	}
}

// Taken returns, for each bucket that is not full, how many tokens are missing.
func (c *counters) Taken() (all []Draw) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, kept := range c.kept {
		for whose, one := range kept.of.All() {
			if one.fill(now, one.flow); one.taken > 0 {
				all = append(all, Draw{What: kept.what, Whose: whose, Flow: one.flow, Tokens: one.taken})
			}
		}
	}
	return all
}

// take takes the draw's tokens from the bucket that find returned.
func (d *Draw) take(now time.Time) {
	d.bucket.Take(now, d.Flow, d.Tokens)
	d.bucket = nil
}
