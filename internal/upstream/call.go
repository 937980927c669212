package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// errIdle ends a call whose progress stopped.
var errIdle = errors.New("no progress")

// call is a request with the clocks of this call; idle may be nil.
type call struct {
	request.Request
	clock, idle *clock
}

// Call sends a request and returns the raw result, which is valid JSON in valid
// UTF-8. It ends within the request's timeout, whatever the upstream does. Errors:
// *RPCError, *UnavailableError, *LostError, *HTTPError, *TimeoutError,
// *TooLargeError, *BusyError, *AnswerError, *InputError, or ctx's own.
func (u *Upstream) Call(ctx context.Context, r request.Request) (json.RawMessage, error) {
	timeout := cmp.Or(max(r.Timeout, 0), u.spec.Timeouts.Call)
	parent, own := ctx, newCallContext(ctx, timeout)
	defer own.end()
	ctx = &own.Context
	c := call{Request: r, clock: &own.clock}
	if err := u.begin(); err != nil {
		return nil, err
	}
	defer u.finished()

	waits := waits{limited: r.Wait > 0, left: r.Wait}
	result, err := u.attempts(ctx, &c, &waits)
	if err == nil && !r.Relay { // else the client answers an input_required result
		result, err = u.rounds(ctx, &c, &waits, result)
	}
	if err == nil {
		u.succeeded()
		return result, nil
	}
	_, timedOut := errors.AsType[*request.TimeoutError](context.Cause(ctx))
	switch {
	case parent.Err() != nil:
		return nil, parent.Err()
	case timedOut && !isUnavailable(err):
		return nil, &request.TimeoutError{After: timeout, Queued: waits.queued, Noise: noiseOf(err)}
	}
	return nil, err
}

func noiseOf(err error) string {
	if noise, ok := errors.AsType[*transport.NoiseError](err); ok {
		return noise.First
	}
	return ""
}

func isUnavailable(err error) bool {
	_, unavailable := errors.AsType[*request.UnavailableError](err)
	_, busy := errors.AsType[*semaphore.BusyError](err)
	return unavailable || busy
}

// watched is call of a request that ends after so long without progress. The server is asked for progress whether or not
// the client takes it: without it, a call that goes on well would look like one that hangs.
func (s *session) watched(ctx context.Context, r *call, idle time.Duration) (json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errIdle)
	watched, forward := *r, r.Sink.Progress
	watched.idle = newClock(idle, func() { cancel(&request.TimeoutError{After: idle, Idle: true}) })
	defer watched.idle.end()
	watched.Sink.Progress = func(params json.RawMessage) {
		watched.idle.restart()
		if forward != nil {
			forward(params)
		}
	}
	result, err := s.call(ctx, &watched)
	if err == nil {
		return result, nil
	}
	if stopped, ok := errors.AsType[*request.TimeoutError](context.Cause(ctx)); ok && stopped.Idle {
		err = &request.TimeoutError{After: idle, Idle: true, Noise: noiseOf(err)}
	}
	return nil, err
}

// maxAttempts bounds how often a call is sent. One of a tool that may be
// repeated can be lost with its session, then meet a session that the server has
// forgotten.
const maxAttempts = 3

// attempts sends the request, and again after a loss where that can do no harm: one
// that surely was not executed, or, once, one that may be repeated.
func (u *Upstream) attempts(ctx context.Context, r *call, w *waits) (json.RawMessage, error) {
	var last *request.LostError // of an attempt that may have been executed
	forgotten := false          // a session ended as the server refused the request
	first := u.current()
	for attempt := 1; ; attempt++ {
		s, err := u.enter(ctx, w)
		if err != nil {
			return nil, afterRetry(last, err)
		}
		if r.Check != nil {
			if err := r.Check(s != first); err != nil {
				u.leave()
				if last != nil {
					return nil, last
				}
				return nil, err
			}
		}
		var result json.RawMessage
		if idle := cmp.Or(max(r.Idle, 0), u.spec.Timeouts.Idle); idle <= 0 {
			result, err = s.call(ctx, r)
		} else {
			result, err = s.watched(ctx, r, idle)
		}
		u.leave()
		if err == nil {
			return result, nil
		}
		if _, idle := errors.AsType[*request.TimeoutError](err); idle || ctx.Err() != nil {
			return nil, err
		}
		_, status := errors.AsType[*transport.StatusError](err)
		refused := status || errors.Is(err, transport.ErrGone)
		err, fresh := u.afterFailure(s, err)
		fresh = fresh && !(refused && forgotten)
		forgotten = forgotten || refused
		lost, ok := errors.AsType[*request.LostError](err)
		if !ok {
			return nil, afterRetry(last, err)
		}
		again := fresh && attempt < maxAttempts && (!lost.MayHaveRun || (r.Repeatable && last == nil))
		if lost.MayHaveRun = lost.MayHaveRun || last != nil; !again {
			return nil, lost
		}
		if lost.MayHaveRun {
			last = lost
		}
	}
}

// afterRetry picks the error to report when a request that may have run failed again with
// err: err, unless err says that nothing was executed. A request to an upstream that
// was stopped reports that, as its caller can go to another. A nil e was not lost.
func afterRetry(e *request.LostError, err error) error {
	unavailable, ok := errors.AsType[*request.UnavailableError](err)
	if e == nil || !isUnavailable(err) || ok && unavailable.Stopped {
		return err
	}
	return e
}

// afterFailure turns what a link says into an error for the caller. fresh says
// that a fresh session may come at once.
func (u *Upstream) afterFailure(s *session, err error) (out error, fresh bool) {
	rpc, isRPC := errors.AsType[*wire.RPCError](err)
	if isRPC && rpc.Code == mcp.UNSUPPORTED_PROTOCOL_VERSION {
		// It has changed its revisions since the handshake, and executed nothing: a
		// fresh session agrees on one of them.
		err = fmt.Errorf("%w: %s", transport.ErrGone, rpc)
		cause := err
		if !s.link.Traits().ConnectionPerRequest {
			cause = errors.New(err.Error()) // other requests end with it, and may have run
		}
		s.link.Life().Fail(cause)
	} else if isRPC {
		return rpc, false
	}
	if large, ok := errors.AsType[*request.TooLargeError](err); ok {
		return large, false
	}
	if answer, ok := errors.AsType[*request.AnswerError](err); ok {
		return answer, false
	}
	status, _ := errors.AsType[*transport.StatusError](err)
	refused := status != nil && status.Refused()
	sent := !errors.Is(err, transport.ErrNotSent) && !errors.Is(err, transport.ErrGone) && !refused
	if cause := s.link.Life().Cause(); cause != nil {
		return u.lostError(cause, sent), true
	}
	// An answer with an error status is an answer, over both transports of HTTP.
	if status != nil {
		reason := u.spec.reason(status)
		if refused {
			return &request.UnavailableError{State: catalog.Unavailable, Reason: reason, RetryAfter: status.RetryAfter}, false
		}
		return &request.HTTPError{Status: status.Code, Reason: reason, RetryAfter: status.RetryAfter}, false
	}
	if s.link.Traits().OneStream {
		return u.lostError(err, sent), false
	}
	// Over HTTP each request has a connection of its own, and the session lives
	// on; the next health check tells more. In the old transport the answer would
	// come elsewhere: what broke says nothing of it.
	if !sent {
		signal(u.doubts)
		return &request.UnavailableError{State: catalog.Unavailable, Reason: u.spec.reason(err)}, false
	}
	return u.lostError(err, sent), s.link.Traits().ConnectionPerRequest
}

func (u *Upstream) lostError(err error, sent bool) error {
	return &request.LostError{Reason: u.spec.reason(err), MayHaveRun: sent, CrashLoop: u.Status().CrashLoop}
}
