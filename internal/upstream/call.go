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
	"mcpx/internal/base/clock"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// call is a request with its two timers. clock bounds the whole call. idle bounds the time without progress, and is nil if there is
// no such bound. told means that mcpx has told the server to cancel the request. MayHaveRun, a field of the request, is also set
// here: after an attempt that the server may have executed, and after an answer in which the server required input.
// again means that the server has refused an attempt, with transport.ErrGone or an HTTP error status. legacy means that the last
// attempt was made in a session of the legacy era.
type call struct {
	request.Request
	clock, idle         *clock.Clock
	told, again, legacy bool
}

// Call sends a request and returns the raw result, which is valid JSON in valid UTF-8. It ends within the request's
// timeout, whatever the server does; only the time in which a client answers a question of the server does not count.
// Errors: *RPCError, *UnavailableError, *LostError, *HTTPError, *TimeoutError, *TooLargeError, *BusyError, *AnswerError,
// *InputError, the error of r.Check, or the error of ctx.
func (u *Upstream) Call(ctx context.Context, r request.Request) (json.RawMessage, error) {
	timeout := cmp.Or(max(r.Timeout, 0), u.spec.Timeouts.Call)
	parent, own := ctx, newCallContext(ctx, timeout)
	defer own.end()
	ctx = &own.Context
	c := call{Request: r, clock: &own.clock}
	c.MayHaveRun = r.MayHaveRun || r.Input.Continues()
	if err := u.begin(); err != nil {
		return nil, err
	}
	defer u.finished()

	waits := waits{owner: r.Client.On().Key(), limited: r.Wait > 0, left: r.Wait, starting: r.Starting}
	result, err := u.attempts(ctx, &c, &waits)
	if requests, _, asks := inputWanted(result); err == nil && asks {
		if u.spec.OnQuestion(); r.Relay { // the caller passes the input_required result on to the client
			err = u.mayAsk(&c, requests)
		} else {
			c.MayHaveRun = true
			result, err = u.rounds(ctx, &c, &waits, result)
		}
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
		return nil, c.timedOut(&request.TimeoutError{After: timeout, Queued: waits.queued}, err)
	}
	return nil, err
}

// timedOut returns timeout, the error for a call that took too long, after it has filled in the details. err is the error with
// which the last attempt ended.
func (r *call) timedOut(timeout *request.TimeoutError, err error) error {
	timeout.Told, timeout.Noise = r.told, noiseOf(err)
	timeout.MayHaveRun = r.MayHaveRun || !errors.Is(err, transport.ErrNotSent)
	return timeout
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

// callWatched does what [session.call] does, but ends the call if there is no progress for the time idle. It requests
// progress even if the client did not, because a call that proceeds would otherwise look like one that hangs.
func (s *session) callWatched(ctx context.Context, r *call, idle time.Duration) (json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := &request.TimeoutError{After: idle, Idle: true}
	watched, forward := *r, r.Sink.Progress
	watched.idle = new(clock.Clock)
	watched.idle.Set(idle, func() { cancel(stalled) })
	watched.idle.Start()
	defer watched.idle.End()
	watched.Sink.Progress = func(params json.RawMessage) {
		watched.idle.Restart()
		if forward != nil {
			forward(params)
		}
	}
	result, err := s.call(ctx, &watched)
	r.told = watched.told
	if err != nil && context.Cause(ctx) == stalled {
		err = r.timedOut(stalled, err)
	}
	return result, err
}

// maxAttempts limits how often attempts sends one request. A third attempt makes sense, for example, if the first lost
// its session, and the second was refused because the server no longer knows the new session.
const maxAttempts = 3

// attempts sends the request. If the session is lost before the answer, attempts sends the request again, provided that the server
// certainly did not execute it. A repeatable request is sent again even if the server may have executed it, but only once. If the
// server refuses a call because of its HTTP headers, attempts first reads the tools again, and then sends the call again.
func (u *Upstream) attempts(ctx context.Context, r *call, w *waits) (json.RawMessage, error) {
	var last *request.LostError // the error of an attempt that the server may have executed
	reread := false             // the tools were read again, as an attempt was refused because of its headers
	first := u.current()
	for attempt := 1; ; attempt++ {
		s, err := u.enter(ctx, w)
		if err != nil {
			return nil, afterRetry(last, err)
		}
		if r.Check != nil {
			if err := r.Check(s != first || reread); err != nil {
				u.leave(w)
				if last != nil {
					return nil, last
				}
				return nil, err
			}
		}
		var result json.RawMessage
		r.legacy = !s.Modern
		if r.Idle > 0 {
			result, err = s.callWatched(ctx, r, r.Idle)
		} else {
			result, err = s.call(ctx, r)
		}
		u.leave(w)
		if err == nil {
			return result, nil
		}
		if _, idle := errors.AsType[*request.TimeoutError](err); idle || ctx.Err() != nil {
			return nil, err
		}
		if !reread && attempt < maxAttempts && s.wrongHeaders(r.Method, err) {
			reread = true
			relisted(ctx, s, silentPause)
			continue
		}
		_, status := errors.AsType[*transport.StatusError](err)
		refused := status || errors.Is(err, transport.ErrGone)
		err, fresh := u.afterFailure(s, err)
		fresh = fresh && !(refused && r.again) // a second refusal is final
		r.again = r.again || refused
		lost, ok := errors.AsType[*request.LostError](err)
		if !ok {
			return nil, afterRetry(last, err)
		}
		again := fresh && attempt < maxAttempts && (!lost.MayHaveRun || (r.Repeatable && last == nil))
		if lost.MayHaveRun = lost.MayHaveRun || last != nil; !again {
			return nil, lost
		}
		if lost.MayHaveRun {
			last, r.MayHaveRun = lost, true
		}
	}
}

// afterRetry returns the error to report when the sending of a request failed with err. earlier is the error of an
// earlier attempt that the server may have executed, or nil. If err only says that the server did not execute the
// request this time, afterRetry returns earlier, which says more. If err says that mcpx stopped the upstream,
// afterRetry returns err, because the caller can then try another server.
func afterRetry(earlier *request.LostError, err error) error {
	unavailable, ok := errors.AsType[*request.UnavailableError](err)
	if earlier == nil || !isUnavailable(err) || ok && unavailable.Stopped {
		return err
	}
	return earlier
}

// afterFailure turns the error of a link into the error that the caller gets. fresh reports whether a session may
// soon work again, so that a retry makes sense.
func (u *Upstream) afterFailure(s *session, err error) (out error, fresh bool) {
	rpc, isRPC := errors.AsType[*wire.RPCError](err)
	if isRPC && rpc.Code == mcp.UNSUPPORTED_PROTOCOL_VERSION {
		// Since the handshake, the server has changed the revisions that it supports, so it did not execute the
		// request. A fresh session negotiates a supported revision.
		err = fmt.Errorf("%w: %s", transport.ErrGone, rpc)
		cause := err
		if !s.link.Traits().ConnectionPerRequest {
			cause = errors.New(err.Error()) // not ErrGone, which would say that the other open requests were not executed
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
	// A response with an HTTP error status is an answer too: the session stays open.
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
	// Over HTTP only the connection of this request has failed: the session stays open. If the request was not sent, the
	// supervising goroutine tests the session at once. If it was sent, a retry makes sense only where each request has a connection
	// of its own. With HTTP+SSE the event stream that brings the answers is still open, so no fresh session will come.
	if !sent {
		signal(u.doubts)
		return &request.UnavailableError{State: catalog.Unavailable, Reason: u.spec.reason(err)}, false
	}
	return u.lostError(err, sent), s.link.Traits().ConnectionPerRequest
}

func (u *Upstream) lostError(err error, sent bool) error {
	return &request.LostError{Reason: u.spec.reason(err), MayHaveRun: sent, CrashLoop: u.Status().CrashLoop}
}
