// Package lazyctx has a context that costs little as long as nothing waits for it.
package lazyctx

import (
	"context"
	"sync"
	"time"
)

// Context is a context that ends with the outer one, or when End is called. It makes a
// context of package context only when Done is called, or Value after the end: that costs
// much of what a small call does. Such a call waits in one place only, which uses [Ends]
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

// Ends returns what ends with ctx, without the cost of Done: at least one of the channels is closed then. inner is
// that of ctx itself, and outer that of the context around it, each nil unless it is a [Context]; done belongs to what
// is around both.
func Ends(ctx context.Context) (done, inner, outer <-chan struct{}) {
	if c, ok := ctx.(*Context); ok {
		ctx, inner = c.outer, c.over
	}
	if c, ok := ctx.(*Context); ok {
		ctx, outer = c.outer, c.over
	}
	return ctx.Done(), inner, outer
}
