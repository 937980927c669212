package upstream

import (
	"context"
	"sync"
	"time"
)

// callContext is the context of a call. It ends with that of the caller or, with a
// *TimeoutError as its cause, when the call's time is over. Most calls wait in one place
// only, for the answer of a stream, which looks at [ends]; a context of package context,
// dear beside all else that a small call does, is made when Done is called.
type callContext struct {
	caller context.Context
	clock  clock
	over   chan struct{} // closed when the time is over

	mu     sync.Mutex
	made   context.Context // from caller; nil before anybody has called Done
	cancel context.CancelCauseFunc
	ended  bool
}

// newCallContext starts the clock of a call. Its caller must call end.
func newCallContext(caller context.Context, d time.Duration) *callContext {
	c := &callContext{caller: caller, over: make(chan struct{})}
	c.clock.start(d, c.expire)
	return c
}

// ends are closed when ctx ends, at least one of them; over may be nil.
func ends(ctx context.Context) (done, over <-chan struct{}) {
	if c, ok := ctx.(*callContext); ok {
		return c.caller.Done(), c.over
	}
	return ctx.Done(), nil
}

func (c *callContext) expire() {
	c.make()
	c.cancel(&TimeoutError{After: c.clock.time})
	close(c.over)
}

func (c *callContext) end() {
	c.clock.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.made != nil {
		c.cancel(nil)
	}
}

// make is the context of package context. After end it has ended.
func (c *callContext) make() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made, c.cancel = context.WithCancelCause(c.caller)
		if c.ended {
			c.cancel(nil)
		}
	}
	return c.made
}

// now is the context that knows most: what was made, else the caller's.
func (c *callContext) now() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made != nil {
		return c.made
	}
	return c.caller
}

// Done implements context.Context.
func (c *callContext) Done() <-chan struct{} { return c.make().Done() }

// Err implements context.Context. When a context ends, those made from it do a moment later.
func (c *callContext) Err() error {
	if err := c.caller.Err(); err != nil {
		return err
	}
	return c.now().Err()
}

// Value implements context.Context. Package context finds the cause in it.
func (c *callContext) Value(key any) any { return c.now().Value(key) }

// Deadline implements context.Context.
func (c *callContext) Deadline() (time.Time, bool) { return c.caller.Deadline() }
