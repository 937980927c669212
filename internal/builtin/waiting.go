package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"mcpx/internal/arguments"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// Pending is a call whose client may stop waiting for it. Some clients give up a call after a time of their own. Before that
// they get a handle in place of the result: the call goes on, and the tool wait_result waits for its result.
type Pending struct {
	// Began is when the call began. Done is closed when it has ended.
	Began time.Time
	Done  chan struct{}
	// result and err are of the call.
	result *results.Result
	err    error

	mu       sync.Mutex
	listener *request.Sink // nil = no request waits now
	handle   string        // the newest one; empty = the client still waits
}

// NewPending makes a call that began at a time. Its maker calls Finish.
func NewPending(began time.Time) *Pending { return &Pending{Began: began, Done: make(chan struct{})} }

// Result is the result of the call, after Done, or its error.
func (c *Pending) Result() (*results.Result, error) { return c.result, c.err }

// Enter makes l the one that hears of the call, until leave.
func (c *Pending) Enter(l *request.Sink) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listener = l
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.listener == l { // nobody else waits meanwhile
			c.listener = nil
		}
	}
}

// Tell hands params to one of the funcs of the listener, which must not block. After leave
// none is called.
func (c *Pending) Tell(params json.RawMessage, which func(*request.Sink) func(json.RawMessage)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener == nil {
		return
	}
	if on := which(c.listener); on != nil {
		on(params)
	}
}

// Finish sets the result, whose size counts from now on where it is kept.
func (c *Pending) Finish(kept *results.Store, result *results.Result, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result, c.err = result, err
	close(c.Done)
	if c.handle != "" && result != nil {
		kept.Grow(c.handle, result.Size())
	}
}

// StillRunning is the answer to a client that would give up soon. Each has a handle of its own, as handles expire.
func (c *Caller) StillRunning(p *Pending) (*results.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.Done:
		return p.result, p.err
	default:
	}
	p.handle = c.Store.Hold(c.Principal, p)
	data := struct {
		Handle  string `json:"handle"`
		Seconds int    `json:"seconds"`
	}{p.handle, int(time.Since(p.Began).Seconds())}
	text := fmt.Sprintf("[still running after %d s; do not repeat the call, wait for its result: %s]",
		data.Seconds, c.CallOf(WaitTool, results.ReadArguments{Handle: p.handle}))
	out := &results.Result{Content: []json.RawMessage{wire.TextBlock(text)}, Code: request.OutcomeRunning, Sent: results.Roughly(text)}
	if c.Form.Always() {
		out.Structured = wire.Encode(results.Object{{Name: "still_running", Value: data}})
	}
	return out, nil
}

// wait runs the tool wait_result: it waits for a call that goes on.
func (c *Caller) wait(ctx context.Context, q *request.Request, given json.RawMessage) (json.RawMessage, error) {
	var args results.ReadArguments
	if err := json.Unmarshal(given, &args); err != nil {
		return nil, arguments.Invalid("/handle: must be a string")
	}
	held, _ := c.Store.Held(args.Handle, c.Principal)
	p, ok := held.(*Pending)
	switch {
	case !ok:
		return nil, arguments.Invalid("/handle: is unknown or has expired")
	case c.Select != "":
		return nil, arguments.Invalid("/select: belongs to the call whose result this waits for")
	case c.Grep != "":
		return nil, arguments.Invalid("/grep: belongs to the call whose result this waits for")
	}
	leave := p.Enter(&q.Sink)
	defer leave()
	var over <-chan time.Time
	if c.Form.Wait > 0 {
		timer := time.NewTimer(c.Form.Wait)
		defer timer.Stop()
		over = timer.C
	}
	result, err := (*results.Result)(nil), error(nil)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-over:
		result, err = c.StillRunning(p)
	case <-p.Done:
		result = p.result
	}
	switch {
	case err != nil:
		return nil, err
	case result == nil:
		return nil, errors.New("the call was cancelled")
	case result.Whole != nil:
		return nil, errors.New("the tool asks the user for something, which only its own call passes on; call it again")
	}
	q.Event.Outcome = result.Code // empty for the result of a tool
	return result.Raw(), nil
}
