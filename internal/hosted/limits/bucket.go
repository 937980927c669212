package limits

import "time"

// bucket is a token bucket. It can go into debt, as by the size of a result, which is known
// only when the result is there. The zero value is full.
type bucket struct {
	taken float64   // tokens, at the time of last
	last  time.Time // zero = never
}

// flow is how a bucket fills: rate tokens a second, up to burst. A rate of 0 is no bound.
type flow struct{ rate, burst float64 }

// wait returns how long it takes until one token is there; 0 = it is.
func (b *bucket) wait(now time.Time, f flow) time.Duration {
	if f.rate <= 0 {
		return 0
	}
	b.fill(now, f)
	missing := b.taken + 1 - max(f.burst, 1)
	if missing <= 0 {
		return 0
	}
	return max(time.Duration(missing/f.rate*float64(time.Second)), 1)
}

// take takes n tokens, whether or not they are there.
func (b *bucket) take(now time.Time, f flow, n float64) {
	if f.rate > 0 {
		b.fill(now, f)
		b.taken += n
	}
}

func (b *bucket) fill(now time.Time, f flow) {
	if since := now.Sub(b.last); since > 0 {
		b.taken = max(0, b.taken-since.Seconds()*f.rate)
		b.last = now
	}
}
