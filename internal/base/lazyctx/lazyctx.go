// Package lazyctx has a context that costs little as long as nothing waits for it.
package lazyctx

import (
	"context"
	"sync"
	"time"
)

// Context is a context that ends with the outer one, or when End is called. It makes a standard context only when Done is
// called, or Value after its end, as that is a large part of the cost of a small call. A call that waits in one place
// only uses [Ends] instead of Done.
type Context struct {
	outer context.Context
	over  chan struct{} // closed by End

	mu     sync.Mutex
	made   context.Context // the standard context within outer; nil until needed
	cancel context.CancelCauseFunc
	ended  bool
	cause  error
}

// Begin makes c, which must be new, a context within outer. The caller must call End.
func (c *Context) Begin(outer context.Context) { c.outer, c.over = outer, make(chan struct{}) }

// End ends the context; a nil cause is context.Canceled. Only the first call has an effect.
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

// make returns the standard context. The caller holds the lock.
func (c *Context) make() context.Context {
	if c.made == nil {
		c.made, c.cancel = context.WithCancelCause(c.outer)
		if c.ended {
			c.cancel(c.cause)
		}
	}
	return c.made
}

func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.make().Done()
}

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

// Value also serves [context.Cause], which looks for the cause in a context's values.
func (c *Context) Value(key any) any {
	c.mu.Lock()
	of := c.outer
	if c.made != nil || c.ended {
		of = c.make()
	}
	c.mu.Unlock()
	return of.Value(key)
}

func (c *Context) Deadline() (time.Time, bool) { return c.outer.Deadline() }

// Ends returns three channels, at least one of which closes when ctx ends, without the cost of Done. inner is for ctx
// itself and outer for the context around it, each nil unless that is a [Context]; done is for the context around both.
func Ends(ctx context.Context) (done, inner, outer <-chan struct{}) {
	if c, ok := ctx.(*Context); ok {
		ctx, inner = c.outer, c.over
	}
	if c, ok := ctx.(*Context); ok {
		ctx, outer = c.outer, c.over
	}
	return ctx.Done(), inner, outer
}
