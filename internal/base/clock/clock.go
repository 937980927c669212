// Package clock measures the time of a call or a program. The time in which a user answers a question is not counted, as it says
// nothing about the server or the program.
package clock

import (
	"sync"
	"time"
)

// Clock calls a func when its time has passed, at most once. Its methods may be called by several goroutines, but Set must be
// called first.
type Clock struct {
	over func()
	full time.Duration

	mu             sync.Mutex
	started, ended bool
	held           int           // how many calls of Hold were not released yet
	timer          *time.Timer   // nil before the clock runs for the first time
	since          time.Time     // since when the clock runs, if it runs
	left           time.Duration // the time that was left at since, or when the clock was stopped
}

// Set makes the clock call over when it has run for d. The clock does not run before Start is called. Once it was started, End must
// be called.
func (c *Clock) Set(d time.Duration, over func()) { c.full, c.left, c.over = d, d, over }

// Start starts the clock. Further calls do nothing.
func (c *Clock) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.started {
		c.started = true
		c.run()
	}
}

// End stops the clock for good.
func (c *Clock) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.timer != nil {
		c.timer.Stop()
	}
}

// Hold stops the clock until release is called. After several calls of Hold, the clock goes on when all are released.
func (c *Clock) Hold() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs() {
		c.timer.Stop()
		c.left -= time.Since(c.since)
	}
	c.held++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held--
		c.run()
	})
}

// Restart gives the clock its full time again.
func (c *Clock) Restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = c.full
	c.run()
}

// runs reports whether the time passes. The caller holds the lock.
func (c *Clock) runs() bool { return c.started && !c.ended && c.held == 0 }

// run sets the timer to the time that is left, if the clock should run. The caller holds the lock.
func (c *Clock) run() {
	if !c.runs() {
		return
	}
	c.since = time.Now()
	if c.timer == nil {
		c.timer = time.AfterFunc(c.left, c.expire)
	} else {
		c.timer.Reset(max(c.left, 0))
	}
}

// expire is called by the timer. While it waited for the lock, the clock may have been stopped or restarted; then it does nothing.
func (c *Clock) expire() {
	c.mu.Lock()
	expired := c.runs() && time.Since(c.since) >= c.left
	c.ended = c.ended || expired
	c.mu.Unlock()
	if expired {
		c.over()
	}
}
