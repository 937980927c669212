package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"mcpx/internal/arguments"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// Some clients give up a call after a time of their own. Before that they get a handle in
// place of the result: the call goes on, and the tool wait_result of the server mcpx waits
// for its result.

const (
	waitTool   = "wait_result"
	waitSchema = `{"type":"object","properties":{"handle":{"type":"string"}},"required":["handle"],"additionalProperties":false}`
)

// openCall is a call whose client may stop waiting for it.
type openCall struct {
	began time.Time
	done  chan struct{} // closed when result and err are there
	// result and err are of execute.
	result *results.Result
	err    error

	mu       sync.Mutex
	listener *request.Sink // nil = no request waits now
	handle   string        // the newest one; empty = the client still waits
}

// executeFor runs a call, and answers with a handle if it takes longer than the client
// waits.
func (e *Executor) executeFor(ctx context.Context, r Request) (*results.Result, error) {
	r.Event = nil // the call may end after the answer to its request, and is an event of its own
	r, _ = e.started(r)
	call := &openCall{began: r.began, done: make(chan struct{})}
	sink := r.Sink
	leave := call.enter(&sink)
	defer leave()
	timer := time.NewTimer(r.Form.Wait)
	defer timer.Stop()
	if r.Client.Modern() && r.Client.Request != nil {
		// A question is the answer to a request of such a client, which does not wait then.
		ask := r.Client.Request
		r.Client = r.Client.Asked(func(ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
			timer.Stop()
			defer timer.Reset(r.Form.Wait)
			return ask(ctx, method, params, progress)
		})
	}
	r.Sink.Progress = func(params json.RawMessage) {
		call.tell(params, func(l *request.Sink) func(json.RawMessage) { return l.Progress })
	}
	if r.Sink.Log != nil {
		r.Sink.Log = func(params json.RawMessage) {
			call.tell(params, func(l *request.Sink) func(json.RawMessage) { return l.Log })
		}
	}
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	wanted := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	e.calls.Go(func() { // ends with the call: at its deadline, or with the registry
		defer cancel(nil)
		var result *results.Result
		var err error
		defer func() {
			if what := recover(); what != nil {
				result, err = Panicked(e.log, r.Event, r.Tool, what).Result(r.Form.Always()), nil
			}
			e.journal.End(r.Event)
			call.finish(&e.store, result, err)
		}()
		result, err = e.execute(running, &r)
	})
	select {
	case <-call.done:
	case <-timer.C:
		if wanted() {
			return e.begin().stillRunning(call, &r)
		}
		<-call.done // soon, as ctx has ended
	}
	if call.err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return call.result, call.err
}

// enter makes l the one that hears of the call, until leave.
func (c *openCall) enter(l *request.Sink) (leave func()) {
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

// tell hands params to one of the funcs of the listener, which must not block. After leave
// none is called.
func (c *openCall) tell(params json.RawMessage, which func(*request.Sink) func(json.RawMessage)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener == nil {
		return
	}
	if on := which(c.listener); on != nil {
		on(params)
	}
}

// finish sets the result, whose size counts from now on where it is kept.
func (c *openCall) finish(kept *results.Store, result *results.Result, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result, c.err = result, err
	close(c.done)
	if c.handle != "" && result != nil {
		kept.Grow(c.handle, result.Size())
	}
}

// stillRunning is the answer to a client that would give up soon. Each has a handle of its
// own, as handles expire.
func (e run) stillRunning(c *openCall, r *Request) (*results.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done:
		return c.result, c.err
	default:
	}
	c.handle = e.store.Hold(r.Client.On().Key(), c)
	data := struct {
		Handle  string `json:"handle"`
		Seconds int    `json:"seconds"`
	}{c.handle, int(time.Since(c.began).Seconds())}
	text := fmt.Sprintf("[still running after %d s; do not repeat the call, wait for its result: %s]",
		data.Seconds, e.pages(r).CallOf(waitTool, results.ReadArguments{Handle: c.handle}))
	out := &results.Result{Content: []json.RawMessage{wire.TextBlock(text)}, Code: request.OutcomeRunning, Sent: results.Roughly(text)}
	if r.Form.Always() {
		out.Structured = wire.Encode(results.Object{{Name: "still_running", Value: data}})
	}
	return out, nil
}

// waitResult runs the tool wait_result: it waits for a call that goes on.
func (e run) waitResult(ctx context.Context, r *Request, arg json.RawMessage) (*results.Result, error) {
	var args results.ReadArguments
	if err := json.Unmarshal(arg, &args); err != nil {
		return nil, arguments.Invalid("/handle: must be a string")
	}
	held, _ := e.store.Held(args.Handle, r.Client.On().Key())
	call, ok := held.(*openCall)
	switch {
	case !ok:
		return nil, arguments.Invalid("/handle: is unknown or has expired")
	case r.Select != "":
		return nil, arguments.Invalid("/select: belongs to the call whose result this waits for")
	case r.Grep != "":
		return nil, arguments.Invalid("/grep: belongs to the call whose result this waits for")
	}
	leave := call.enter(&r.Sink)
	defer leave()
	var over <-chan time.Time
	if r.Form.Wait > 0 {
		timer := time.NewTimer(r.Form.Wait)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-over:
		return e.stillRunning(call, r)
	case <-call.done:
	}
	switch {
	case call.result == nil:
		return nil, errors.New("the call was cancelled")
	case call.result.Whole != nil:
		return nil, errors.New("the tool asks the user for something, which only its own call passes on; call it again")
	}
	result := *call.result // each answer is annotated by itself
	result.Content = slices.Clip(result.Content)
	return &result, nil
}
