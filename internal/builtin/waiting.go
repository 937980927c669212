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

// Pending is a call that may take longer than its client waits. Some clients give up a call after a while. Shortly
// before that, mcpx gives them a handle instead of the result; the call goes on, and the tool wait_result waits
// for it.
type Pending struct {
	// Began is when the call began. Done is closed when it has ended.
	Began time.Time
	Done  chan struct{}
	// result and err are set before Done is closed.
	result *results.Result
	err    error

	mu       sync.Mutex
	listener *request.Sink // the sink of the request that waits now; nil if none waits
	handle   string        // the newest handle; empty while the original client waits
	waits    int           // how many requests of wait_result wait for the call
}

// maxWaits is how many requests may wait for the same call. These requests need a limit of their own because they occupy no
// concurrency slot. A client needs one request, and a second if it loses the answer to the first.
const maxWaits = 4

// NewPending returns the Pending of a call that began at this time. Whoever makes it must call Finish when the call has ended.
func NewPending(began time.Time) *Pending { return &Pending{Began: began, Done: make(chan struct{})} }

// Result returns the call's result or error, once Done is closed.
func (c *Pending) Result() (*results.Result, error) { return c.result, c.err }

// Enter passes the call's notifications to the sink l, until the caller calls leave.
func (c *Pending) Enter(l *request.Sink) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listener = l
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.listener == l { // otherwise another request has begun to wait
			c.listener = nil
		}
	}
}

// await counts one more request that waits for the call. It returns false if too many are waiting already.
func (c *Pending) await() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits >= maxWaits {
		return false
	}
	c.waits++
	return true
}

// awaited is called when a request that await has counted no longer waits.
func (c *Pending) awaited() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits--
}

// Tell passes the params of a notification to the request that waits now. The func choose returns the func of the sink that gets
// the params: Progress or Log. That func must not block. If no request waits, Tell does nothing.
func (c *Pending) Tell(params json.RawMessage, choose func(*request.Sink) func(json.RawMessage)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener == nil {
		return
	}
	if on := choose(c.listener); on != nil {
		on(params)
	}
}

// Finish stores the result or the error of the call in c, and closes Done. If the call has a handle, the store keeps c under this
// handle. From now on, the size of the result counts towards the size limit of the store.
func (c *Pending) Finish(store *results.Store, result *results.Result, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result, c.err = result, err
	close(c.Done)
	if c.handle != "" && result != nil {
		store.Grow(c.handle, result.Size())
	}
}

// StillRunning returns the answer for a client that would soon stop waiting. Each such answer has a new handle, since handles
// expire. If the call has ended already, StillRunning returns its result.
func (c *Caller) StillRunning(p *Pending) (*results.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.Done:
		return p.result, p.err
	default:
	}
	p.handle = c.Hold(p)
	data := struct {
		Handle  string `json:"handle"`
		Seconds int    `json:"seconds"`
	}{p.handle, int(time.Since(p.Began).Seconds())}
	after := ""
	if data.Seconds > 0 {
		after = fmt.Sprintf(" after %d s", data.Seconds)
	}
	text := fmt.Sprintf("[still running%s; do not repeat the call, wait for its result: %s]",
		after, c.CallOf(WaitTool, results.ReadArguments{Handle: p.handle}))
	out := &results.Result{Content: []json.RawMessage{wire.TextBlock(text)}, Code: request.OutcomeRunning, Sent: results.Roughly(text)}
	if c.Form.Always() {
		out.Structured = wire.Encode(results.Object{{Name: "still_running", Value: data}})
	}
	return out, nil
}

// wait runs the tool wait_result.
func (c *Caller) wait(ctx context.Context, q *request.Request, given json.RawMessage) (json.RawMessage, error) {
	var args results.ReadArguments
	if err := json.Unmarshal(given, &args); err != nil {
		return nil, arguments.Invalid("/handle: must be a string")
	}
	held, origin, err := c.Held(ctx, args.Handle)
	c.Origin = origin // StillRunning needs it for the next handle of the call
	switch {
	case err != nil:
		return nil, arguments.Invalid(err.Error())
	case c.Select != "":
		return nil, arguments.Invalid("/select: belongs to the call whose result this waits for")
	case c.Grep != "":
		return nil, arguments.Invalid("/grep: belongs to the call whose result this waits for")
	}
	p := held.(*Pending)
	if !p.await() {
		return nil, &request.LimitError{Limit: fmt.Sprintf("%d waits for one call", maxWaits), RetryAfter: time.Second}
	}
	defer p.awaited()
	leave := p.Enter(&q.Sink)
	defer leave()
	var over <-chan time.Time
	if c.Form.Wait > 0 {
		timer := time.NewTimer(c.Form.Wait)
		defer timer.Stop()
		over = timer.C
	}
	var result *results.Result
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-over:
		result, err = c.StillRunning(p)
	case <-p.Done:
		result, err = p.result, p.err
	}
	rpc, opens := errors.AsType[*wire.RPCError](err) // the user must open a URL; see caller.Client.OpensURLsOf
	switch {
	case !c.MayRead(ctx, origin): // the caller has lost the right to the tool meanwhile
		return nil, arguments.Invalid("/handle: is unknown or has expired")
	case opens:
		// If the RPCError itself were returned, the client would only repeat wait_result.
		return nil, fmt.Errorf("the tool asks the user for something; after that, call it again: %s %s", rpc.Message, rpc.Data)
	case err != nil || result == nil:
		return nil, errors.New("the call was cancelled")
	case result.Whole != nil:
		return nil, errors.New("the tool asks the user for something, which only its own call passes on; call it again")
	}
	q.Event.Outcome = result.Code // empty unless the call failed
	return result.Raw(), nil
}
