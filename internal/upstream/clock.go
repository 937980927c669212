package upstream

import (
	"context"
	"sync"
	"time"

	"mcpx/internal/base/lazyctx"
	"mcpx/internal/request"
)

// callContext is the context of a call. It ends with a *TimeoutError when the time of the call has passed.
type callContext struct {
	lazyctx.Context
	clock clock
}

// newCallContext starts the clock of a call. Its caller must call the method end.
func newCallContext(outer context.Context, d time.Duration) *callContext {
	c := &callContext{}
	c.Begin(outer)
	c.clock.start(d, func() { c.End(&request.TimeoutError{After: d}) })
	return c
}

func (c *callContext) end() {
	c.clock.end()
	c.End(nil)
}

// clock ends a call when its time, or its time without progress, has passed. The clock is stopped while the server waits for an
// answer of the client: the time that a user takes to answer says nothing about the server.
type clock struct {
	time time.Duration // the full time

	mu    sync.Mutex
	timer *time.Timer
	// left is the time that remains for the call. It is not updated while the clock runs: then it is what remained when the clock
	// last started. The field since says when that was.
	left  time.Duration
	since time.Time
	held  int // how many open questions stop the clock
	ended bool
}

// newClock starts a clock that calls the func stop when the time d has passed. Its caller must call the method end.
func newClock(d time.Duration, stop func()) *clock {
	c := &clock{}
	c.start(d, stop)
	return c
}

// start starts a clock that is still the zero value. The clock calls the func stop when the time d has passed. The
// caller must call the method end.
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

// hold stops the clock until the method release was called as often as hold.
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

// restart gives the call its full time again, as if it had just begun.
func (c *clock) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left = c.time; c.held == 0 && !c.ended {
		c.since = time.Now()
		c.timer.Reset(c.left)
	}
}
