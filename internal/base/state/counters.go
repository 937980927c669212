package state

import (
	"sync"
	"time"

	"mcpx/internal/base/lru"
)

// Bucket is a bucket of tokens that can go into debt. The zero value is full. It is not safe for concurrent use.
type Bucket struct {
	taken float64   // tokens, at the time of last
	last  time.Time // zero = never
}

// Rate is how a bucket fills: Rate tokens a second, up to Burst. A rate of 0 is no bound.
type Rate struct{ Rate, Burst float64 }

// Wait returns how long it takes until one token is there; 0 = it is.
func (b *Bucket) Wait(now time.Time, f Rate) time.Duration {
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

// Take takes n tokens, whether or not they are there. Fewer than 0 give back, no more than the bucket lacks.
func (b *Bucket) Take(now time.Time, f Rate, n float64) {
	if f.Rate > 0 {
		b.fill(now, f)
		b.taken = max(0, b.taken+n)
	}
}

func (b *Bucket) fill(now time.Time, f Rate) {
	if since := now.Sub(b.last); since > 0 {
		b.taken = max(0, b.taken-since.Seconds()*f.Rate)
		b.last = now
	}
}

// counters are [Counters] in memory.
type counters struct {
	most int
	mu   sync.Mutex
	kept []keptCounters // few
}

// keptCounters are those of one What, by Whose.
type keptCounters struct {
	what string
	of   *lru.Map[string, counter]
}

type counter struct {
	flow Rate // for which the bucket was made
	Bucket
}

// NewCounters makes counters in memory. Of each What it surely keeps the most buckets that were used last, and no more than twice as
// many.
func NewCounters(most int) Counters { return &counters{most: most} }

// find finds the bucket of a draw. The caller holds the lock, and lets go of the bucket with it.
func (c *counters) find(d *Draw) *Bucket {
	one := c.of(d.What).Get(d.Whose)
	if one.flow != d.Flow {
		*one = counter{flow: d.Flow}
	}
	return &one.Bucket
}

func (c *counters) of(what string) *lru.Map[string, counter] {
	for i := range c.kept {
		if c.kept[i].what == what {
			return c.kept[i].of
		}
	}
	of := lru.New[string, counter](c.most, nil)
	c.kept = append(c.kept, keptCounters{what, of})
	return of
}

// Take implements [Counters].
func (c *counters) Take(from []Draw) (short int, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for i := range from {
		d := &from[i]
		d.bucket = c.find(d)
		if wait := d.bucket.Wait(now, d.Flow); wait > 0 { // before anything is taken from any
			return i, wait
		}
	}
	for i := range from {
		from[i].take(now)
	}
	return -1, 0
}

// Charge implements [Counters].
func (c *counters) Charge(to []Draw) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for i := range to {
		to[i].bucket = c.find(&to[i])
		to[i].take(now)
	}
}

// take takes the tokens of a draw whose bucket was found, and forgets the bucket.
func (d *Draw) take(now time.Time) {
	d.bucket.Take(now, d.Flow, d.Tokens)
	d.bucket = nil
}
