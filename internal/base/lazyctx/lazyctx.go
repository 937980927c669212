// Package lazyctx has a context that costs little as long as nothing waits for it.
package lazyctx

import (
	"context"
	"sync"
	"time"
)

// Context is a context that ends with the outer one, or when End is called. It makes a
// context of package context only when Done is called, or Value after the end: that costs
// much of what a small call does. Such a call waits in one place only, which uses [Context.Within]
// instead.
type Context struct {
	outer context.Context
	over  chan struct{} // closed by End

	mu     sync.Mutex
	made   context.Context // in outer; nil before it was needed
	cancel context.CancelCauseFunc
	ended  bool
	cause  error
}

// Begin makes c, which must be new, a context in outer. Its caller must call End.
func (c *Context) Begin(outer context.Context) { c.outer, c.over = outer, make(chan struct{}) }

// End ends the context; a nil cause is context.Canceled. Only the first one counts.
func (c *Context) End(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended, c.cause = true, cause
	if c.made != nil {
		c.cancel(cause)
	}
	close(c.over)
}

// make makes the context of package context. The caller holds the lock.
func (c *Context) make() context.Context {
	if c.made == nil {
		c.made, c.cancel = context.WithCancelCause(c.outer)
		if c.ended {
			c.cancel(c.cause)
		}
	}
	return c.made
}

// Done implements context.Context.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.make().Done()
}

// Err implements context.Context.
func (c *Context) Err() error {
	if err := c.outer.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return context.Canceled
	}
	return nil
}

// Value implements context.Context. [context.Cause] looks for the cause in it.
func (c *Context) Value(key any) any {
	c.mu.Lock()
	of := c.outer
	if c.made != nil || c.ended {
		of = c.make()
	}
	c.mu.Unlock()
	return of.Value(key)
}

// Deadline implements context.Context.
func (c *Context) Deadline() (time.Time, bool) { return c.outer.Deadline() }

// Within returns what c is made of: it ends with outer, and when over is closed. What waits for both
// has no need of Done.
func (c *Context) Within() (outer context.Context, over <-chan struct{}) { return c.outer, c.over }
