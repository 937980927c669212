package executor

import (
	"context"
	"encoding/json"
	"time"

	"mcpx/internal/builtin"
	"mcpx/internal/caller"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// executeFor runs a request of a client that waits for an answer only for the time Format.Wait. If the request takes longer,
// the client gets a handle with which it can ask for the result later. work makes the call or the calls of the request.
func (e *Executor) executeFor(
	ctx context.Context, r Request, work func(*Executor, context.Context, Request) (*results.Result, error),
) (*results.Result, error) {
	r.Event = nil // a call may continue after its request was answered, so it gets its own event
	call := builtin.NewPending(time.Now())
	sink := r.Sink
	leave := call.Enter(&sink)
	defer leave()
	timer := time.NewTimer(r.Format.Wait)
	defer timer.Stop()
	if r.Client.Modern() && r.Client.Request != nil {
		// mcpx asks a modern client a question by answering its request. So the client does not wait for the call while a
		// question is open. After the answer to the question, the client waits for the whole of Format.Wait again.
		ask := r.Client.Request
		r.Client = r.Client.Asked(func(
			ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage),
		) (json.RawMessage, error) {
			timer.Stop()
			defer timer.Reset(r.Format.Wait)
			return ask(ctx, method, params, progress)
		})
	}
	r.Sink.Progress = func(params json.RawMessage) {
		call.Tell(params, func(l *request.Sink) func(json.RawMessage) { return l.Progress })
	}
	if r.Sink.Log != nil {
		r.Sink.Log = func(params json.RawMessage) {
			call.Tell(params, func(l *request.Sink) func(json.RawMessage) { return l.Log })
		}
	}
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	wanted := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	e.calls.Go(func() { // ends with the calls: at the latest at their timeouts, or with Close
		defer cancel(nil)
		defer caller.OnRevoked(ctx, func() { cancel(caller.ErrRevoked) })()
		defer context.AfterFunc(e.life, func() { cancel(errClosed) })()
		var result *results.Result
		var err error
		defer func() {
			if what := recover(); what != nil {
				result, err = Panicked(e.log, nil, r.Tool, what).Result(r.Format.Always()), nil
			}
			call.Finish(&e.store, result, err)
		}()
		result, err = work(e, running, r)
	})
	select {
	case <-call.Done:
	case <-timer.C:
		if wanted() {
			taking := e.begin().taking(&r)
			return taking.StillRunning(call)
		}
		<-call.Done // ctx has ended, so this does not take long
	}
	if result, err := call.Result(); err == nil || ctx.Err() == nil {
		return result, err
	}
	return nil, ctx.Err()
}
