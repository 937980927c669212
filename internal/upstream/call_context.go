package upstream

import (
	"context"
	"time"

	"mcpx/internal/base/lazyctx"
	"mcpx/internal/request"
)

// callContext is the context of a call. It ends with a *TimeoutError when the call's time is
// over.
type callContext struct {
	lazyctx.Context
	clock clock
}

// newCallContext starts the clock of a call. Its caller must call end.
func newCallContext(outer context.Context, d time.Duration) *callContext {
	c := &callContext{}
	c.Begin(outer)
	c.clock.start(d, c.expire)
	return c
}

func (c *callContext) expire() { c.End(&request.TimeoutError{After: c.clock.time}) }

func (c *callContext) end() {
	c.clock.end()
	c.End(nil)
}
