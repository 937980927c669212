package upstream

import (
	"context"
	"time"

	"mcpx/internal/base/clock"
	"mcpx/internal/base/lazyctx"
	"mcpx/internal/request"
)

// callContext is the context of a call. It ends with a *TimeoutError when the time of the call has passed. The clock is held while
// the server waits for an answer of the client.
type callContext struct {
	lazyctx.Context
	clock clock.Clock
}

// newCallContext starts the clock of a call. Its caller must call the method end.
func newCallContext(outer context.Context, d time.Duration) *callContext {
	c := &callContext{}
	c.Begin(outer)
	c.clock.Set(d, func() { c.End(&request.TimeoutError{After: d}) })
	c.clock.Start()
	return c
}

func (c *callContext) end() {
	c.clock.End()
	c.End(nil)
}
