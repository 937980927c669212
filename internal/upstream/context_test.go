package upstream

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/lazyctx"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// TestContext: the context of a call, inside a lazyctx.Context, behaves like a context from context.WithCancelCause,
// no matter when lazyctx creates the standard context inside, and who cancels it.
func TestContext(t *testing.T) {
	mcptest.NoLeaks(t)
	why, outerWhy := errors.New("why"), errors.New("why the outer one")
	for name, end := range map[string]struct {
		end   func(c *lazyctx.Context, outer context.CancelCauseFunc)
		cause error
	}{
		"end":       {func(c *lazyctx.Context, _ context.CancelCauseFunc) { c.End(why) }, why},
		"end twice": {func(c *lazyctx.Context, _ context.CancelCauseFunc) { c.End(why); c.End(nil) }, why},
		"no cause":  {func(c *lazyctx.Context, _ context.CancelCauseFunc) { c.End(nil) }, context.Canceled},
		"outer":     {func(_ *lazyctx.Context, outer context.CancelCauseFunc) { outer(outerWhy) }, outerWhy},
	} {
		for _, early := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				type key struct{}
				outer, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, 1))
				defer cancel(nil)
				c := &lazyctx.Context{}
				c.Begin(outer)
				defer c.End(nil)
				call := newCallContext(c, time.Hour)
				defer call.end()
				done, _, request := lazyctx.Ends(&call.Context)
				if early {
					c.Done()
				}
				if c.Err() != nil || context.Cause(call) != nil || call.Value(key{}) != 1 {
					t.Fatal("it has ended, or lacks a value", c.Err(), context.Cause(call), call.Value(key{}))
				}
				end.end(c, cancel)
				select {
				case <-done:
				case <-request:
				}
				child, stop := context.WithCancel(call)
				defer stop()
				for _, one := range []context.Context{c, call, child} {
					<-one.Done()
					if one.Err() != context.Canceled || context.Cause(one) != end.cause {
						t.Errorf("%T: %v, %v", one, one.Err(), context.Cause(one))
					}
				}
			})
		}
	}
}

// TestContext_Time: when the time of a call has passed, its context and the contexts derived from it end, and no
// others.
func TestContext_Time(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer := &lazyctx.Context{}
		outer.Begin(t.Context())
		defer outer.End(nil)
		call := newCallContext(outer, time.Minute)
		defer call.end()
		child, stop := context.WithCancel(call)
		defer stop()
		_, over, _ := lazyctx.Ends(&call.Context)
		began := time.Now()
		<-over
		<-child.Done()
		timeout, ok := errors.AsType[*request.TimeoutError](context.Cause(child))
		if waited := time.Since(began); !ok || timeout.After != time.Minute || waited != time.Minute {
			t.Error(context.Cause(child), waited)
		}
		if outer.Err() != nil {
			t.Error("the request has ended with its call")
		}
	})
}
