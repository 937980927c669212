// Package lazyctx has a context that is cheap as long as its method Done is not called.
package lazyctx

import (
	"context"
	"sync"
	"time"
)

// Context is a context that ends when the outer context ends or when End is called. Making a context of package context is a large
// part of the cost of a small call. So Context makes one only if Done is called, or if Value is called after End. Code that waits
// for the end of a context in only one place uses [Ends] instead of Done.
type Context struct {
	outer context.Context
	over  chan struct{} // closed by the method End

	mu     sync.Mutex
	made   context.Context // made by package context, within outer; nil until needed
	cancel context.CancelCauseFunc
	ended  bool
	cause  error
}

// Begin makes c, which must be new, a context within outer. The caller must call End when the work is done.
func (c *Context) Begin(outer context.Context) { c.outer, c.over = outer, make(chan struct{}) }

// End ends the context. If cause is nil, the cause is context.Canceled. Only the first call has an effect.
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

// make returns the context of package context, which it creates at its first call. The caller holds the lock.
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

// Value also makes [context.Cause] work, which looks for the cause among a context's values.
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

// Ends returns three channels to wait on instead of ctx.Done(): when ctx ends, at least one of them is closed. Unlike Done, Ends makes
// no context of package context for ctx, nor for the context around it, if they are [Context]s. If ctx is a [Context], inner is closed
// by its End. If the context around ctx is then a [Context] too, outer is closed by the End of that one. Otherwise inner or outer is
// nil. done is the Done channel of the first context that is left: ctx itself, the context around ctx, or the one around that.
func Ends(ctx context.Context) (done, inner, outer <-chan struct{}) {
	if c, ok := ctx.(*Context); ok {
		ctx, inner = c.outer, c.over
	}
	if c, ok := ctx.(*Context); ok {
		ctx, outer = c.outer, c.over
	}
	return ctx.Done(), inner, outer
}
