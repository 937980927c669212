package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/request"
)

// task is a task as defined by MCP 2025-11-25 (basic/utilities/tasks).
type task struct {
	ID      string `json:"taskId"`
	Status  string `json:"status"`
	Message string `json:"statusMessage"`
	// TTL and PollInterval are in milliseconds, perhaps with a fraction; nil if the server did not send them.
	TTL          *float64 `json:"ttl"`
	PollInterval *float64 `json:"pollInterval"`
}

const (
	// firstPoll is the interval between polls if the server gives none. minPoll and maxPoll are the limits for an interval
	// that the server gives.
	firstPoll = time.Second
	minPoll   = 100 * time.Millisecond
	maxPoll   = 30 * time.Second
	// longestTask is the longest ttl that mcpx accepts from a server; a longer one is shortened to it.
	longestTask = 24 * time.Hour
	// cancelTime is how long mcpx waits for the answer to tasks/cancel.
	cancelTime = 2 * time.Second
)

// runTask calls a tool that its server runs only as a task. The server answers with a task id, which mcpx polls. The caller
// gets each new status message as progress, and the result in the end. Questions of the server to the user arrive while
// tasks/result waits. A task may run for its ttl or the call's timeout, whichever is longer. If it has not ended then, or if a
// poll fails or ctx ends, mcpx cancels it. A server that answers without a task id has run the tool at once: its answer is the
// result.
func (e run) runTask(ctx context.Context, r *request.Request) (json.RawMessage, error) {
	asTask(r, []byte("{}"))
	raw, err := e.registry.Send(ctx, r)
	if err != nil {
		return nil, err
	}
	var created struct{ Task task }
	if json.Unmarshal(raw, &created) != nil || created.Task.ID == "" {
		return raw, nil // the server ran the tool without a task
	}
	limit := r.Timeout
	if ttl := created.Task.TTL; ttl != nil {
		limit = max(limit, milliseconds(*ttl, longestTask))
	}
	raw, err = e.followTask(ctx, r, created.Task, limit)
	r.Event.Upstream = time.Since(r.Event.Asked) // includes the pauses between polls
	return raw, lostTask(err)
}

// lostTask returns the error of a call from the error of a message about its task. If the message was not sent, the call must
// not be made again, because the task may already have done its work.
func lostTask(err error) error {
	if _, replaced := errors.AsType[*request.ReplacedError](err); replaced {
		return &request.LostError{Reason: "the config changed while the task ran", MayHaveRun: true, Unsent: true}
	}
	return request.Begun(err)
}

// asTask asks the server to run a call as a task: it adds params to the call as the member task.
func asTask(r *request.Request, params json.RawMessage) {
	r.Params = append(append(append(r.Params[:len(r.Params)-1:len(r.Params)-1], `,"task":`...), params...), '}')
	r.Repeatable = false
}

// followTask polls a task until it ends, for at most the duration limit, and returns its result. After an error, it cancels the
// task unless the server has said that the task has ended.
func (e run) followTask(ctx context.Context, r *request.Request, t task, limit time.Duration) (raw json.RawMessage, err error) {
	of := request.Request{
		From: request.From{Client: r.Client, Sink: r.Sink, Event: r.Event}, To: r.To, Scope: r.Scope, Apps: r.Apps,
		Params: append(wire.AppendQuoted([]byte(`{"taskId":`), t.ID), '}'), MayHaveRun: true,
	}
	defer func() {
		if err != nil && !t.ended() {
			e.cancelTask(ctx, of)
		}
	}()
	over := time.NewTimer(limit)
	defer over.Stop()
	began, said := time.Now(), ""
	for round := 1; t.Status == "working"; round++ {
		if r.Sink.Progress != nil && t.Message != said {
			said = t.Message
			progress := fmt.Appendf(nil, `{"progress":%d,"message":%s}`, round, wire.Encode(said))
			r.Sink.Progress(request.Originated(r.To.Name, progress))
		}
		pause := time.NewTimer(t.interval())
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, ctx.Err()
		case <-over.C:
			pause.Stop()
			return nil, &request.TimeoutError{After: limit, Told: true, MayHaveRun: true}
		}
		poll := of
		poll.Method, poll.Timeout, poll.Repeatable = "tasks/get", max(limit-time.Since(began), time.Second), true
		raw, err := e.registry.Send(ctx, &poll)
		if err != nil {
			return nil, err
		}
		t = task{ID: t.ID}
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, fmt.Errorf("the server's answer to tasks/get is no task: %w", err)
		}
	}
	result := of
	result.Method, result.Timeout = "tasks/result", max(limit-time.Since(began), time.Second)
	return e.registry.Send(ctx, &result)
}

// ended reports whether the task can do nothing more. A task with another status, such as input_required, may still run.
func (t *task) ended() bool {
	return t.Status == "completed" || t.Status == "failed" || t.Status == "cancelled"
}

// interval returns the time until the next poll: what the server has asked for, between minPoll and maxPoll.
func (t *task) interval() time.Duration {
	if t.PollInterval == nil {
		return firstPoll
	}
	return max(milliseconds(*t.PollInterval, maxPoll), minPoll)
}

// milliseconds returns the duration of n milliseconds, but at least 0 and at most the duration most.
func milliseconds(n float64, most time.Duration) time.Duration {
	return time.Duration(min(max(n, 0)*float64(time.Millisecond), float64(most)))
}

// cancelTask asks the server to cancel a task, even if ctx has ended. It ignores the answer, because the call has failed
// already.
func (e run) cancelTask(ctx context.Context, of request.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	of.Method, of.Timeout, of.Sink = "tasks/cancel", cancelTime, request.Sink{}
	_, _ = e.registry.Send(ctx, &of)
}
