package programs

import (
	"sync"
	"time"
)

// clock measures the time of a program, from the first call of start. It does not run while it is held, which is while the user
// confirms a call.
type clock struct {
	over chan struct{} // closed when the time is over

	mu      sync.Mutex
	left    time.Duration
	timer   *time.Timer // nil while the clock stands still
	since   time.Time   // since when timer runs
	holds   int         // how many times hold was called without a release
	started bool
	ended   bool
}

func newClock(limit time.Duration) *clock { return &clock{left: limit, over: make(chan struct{})} }

// start starts the clock, unless it was started before.
func (c *clock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = true
	c.run()
}

// run sets the timer if the clock should run but stands still. The caller holds the lock.
func (c *clock) run() {
	if !c.started || c.ended || c.holds > 0 || c.timer != nil {
		return
	}
	c.since = time.Now()
	c.timer = time.AfterFunc(c.left, c.expire)
}

// expire ends the time. It does nothing if the clock was stopped while expire waited for the lock.
func (c *clock) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil && !c.ended && time.Since(c.since) >= c.left {
		c.ended = true
		close(c.over)
	}
}

// hold stops the clock until release is called. If there are several holds, the clock goes on after the last release.
func (c *clock) hold() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds++
	c.pause()
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.holds--
		c.run()
	})
}

// pause stops the timer. The caller holds the lock.
func (c *clock) pause() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer, c.left = nil, max(c.left-time.Since(c.since), 0)
	}
}

// end stops the clock for good.
func (c *clock) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pause()
	c.ended = true
}
