package upstream

import (
	"sync"
	"time"
)

// clock ends a call after its time. It stands still while a client is asked something:
// how long a person takes says nothing about the server.
type clock struct {
	time time.Duration // of the whole call

	mu    sync.Mutex
	timer *time.Timer
	left  time.Duration // while it stands still, else from since on
	since time.Time
	held  int // questions that are open
	ended bool
}

// newClock starts a clock that calls stop when the time is over. The caller must call end.
func newClock(d time.Duration, stop func()) *clock {
	c := &clock{}
	c.start(d, stop)
	return c
}

// start is newClock for a zero clock.
func (c *clock) start(d time.Duration, stop func()) {
	c.time, c.left, c.since = d, d, time.Now()
	c.timer = time.AfterFunc(d, stop)
}

func (c *clock) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.timer.Stop()
}

// hold makes the clock stand still until as many calls of release.
func (c *clock) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held++; c.held == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
}

func (c *clock) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held--; c.held == 0 && !c.ended {
		c.since = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}

// restart gives the call its whole time again.
func (c *clock) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left = c.time; c.held == 0 && !c.ended {
		c.since = time.Now()
		c.timer.Reset(c.left)
	}
}
