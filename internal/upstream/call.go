package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"mcpx/internal/catalog"
)

// errIdle ends a call whose progress stopped.
var errIdle = errors.New("no progress")

// Call calls a tool and returns the raw result. It ends within the call's
// timeout, whatever the upstream does. Errors: *RPCError, *UnavailableError,
// *LostError, *HTTPError, *TimeoutError, *TooLargeError, *BusyError, *AnswerError,
// or ctx's own.
func (u *Upstream) Call(ctx context.Context, c Call) (json.RawMessage, error) {
	timeout := u.spec.timeout(c)
	parent := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, &TimeoutError{After: timeout})
	defer cancel()
	if err := u.take(); err != nil {
		return nil, err
	}
	defer u.done()

	waits := waits{limited: c.Wait > 0, left: c.Wait}
	result, err := u.attempts(ctx, c, &waits)
	var timedOut *TimeoutError
	switch {
	case err == nil:
		u.succeeded()
		return result, nil
	case parent.Err() != nil:
		return nil, parent.Err()
	case ctx.Err() != nil && errors.As(context.Cause(ctx), &timedOut) && !isUnavailable(err):
		return nil, &TimeoutError{After: timeout, Queued: waits.queued, Noise: noiseOf(err)}
	}
	return nil, err
}

// waits are how a call waits before it is sent, in all its attempts together.
type waits struct {
	limited bool
	left    time.Duration // of the wait for a session, where it is limited
	queued  time.Duration // for a place among the concurrent calls
}

// noiseError ends a request during which a server wrote what is no message.
type noiseError struct {
	err   error
	first string
}

func (e *noiseError) Error() string { return e.err.Error() }
func (e *noiseError) Unwrap() error { return e.err }

func noiseOf(err error) string {
	var noise *noiseError
	if errors.As(err, &noise) {
		return noise.first
	}
	return ""
}

func isUnavailable(err error) bool {
	var unavailable *UnavailableError
	var busy *BusyError
	return errors.As(err, &unavailable) || errors.As(err, &busy)
}

// send sends the call on s. Where there is an idle timeout, the server is asked
// for progress whether or not the caller wants to hear of it: without it, a call
// that goes on well would look like one that hangs.
func (u *Upstream) send(ctx context.Context, s *session, c Call) (json.RawMessage, error) {
	d := u.spec.IdleTimeout
	if c.Idle > 0 {
		d = c.Idle
	}
	if d <= 0 {
		return s.call(ctx, c)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errIdle)
	timer := time.AfterFunc(d, func() { cancel(&TimeoutError{After: d, Idle: true}) })
	defer timer.Stop()
	forward := c.OnProgress
	c.OnProgress = func(params json.RawMessage) {
		timer.Reset(d)
		if forward != nil {
			forward(params)
		}
	}
	result, err := s.call(ctx, c)
	var idle *TimeoutError
	if err != nil && errors.As(context.Cause(ctx), &idle) && idle.Idle {
		return nil, &TimeoutError{After: d, Idle: true, Noise: noiseOf(err)}
	}
	return result, err
}

// maxAttempts bounds how often a call is sent. One of a tool that may be
// repeated can be lost with its session, then meet a session that the server has
// forgotten.
const maxAttempts = 3

// attempts sends the call, and again after a loss where that can do no harm: one
// that surely was not executed, or, once, one of a tool that may be repeated.
func (u *Upstream) attempts(ctx context.Context, c Call, w *waits) (json.RawMessage, error) {
	var last *LostError // of an attempt that may have been executed
	forgotten := false  // a session ended as the server refused the call
	for attempt := 1; ; attempt++ {
		s, release, err := u.enter(ctx, w)
		if err != nil {
			return nil, last.over(err)
		}
		result, err := u.send(ctx, s, c)
		release()
		var idle *TimeoutError
		if err == nil || ctx.Err() != nil || errors.As(err, &idle) {
			return result, err
		}
		var status *statusError
		refused := errors.Is(err, errGone) || errors.As(err, &status)
		err, fresh := u.afterFailure(s, err)
		fresh = fresh && !(refused && forgotten)
		forgotten = forgotten || refused
		var lost *LostError
		if !errors.As(err, &lost) {
			return nil, last.over(err)
		}
		again := fresh && attempt < maxAttempts && (!lost.MayHaveRun || (c.Repeatable && last == nil))
		if lost.MayHaveRun = lost.MayHaveRun || last != nil; !again {
			return nil, lost
		}
		if lost.MayHaveRun {
			last = lost
		}
	}
}

// over is the error of a call that was lost, and then failed with err: err, unless
// that says that nothing was executed. One that was stopped says so itself, as its
// call can go to another. A nil e was not lost.
func (e *LostError) over(err error) error {
	var unavailable *UnavailableError
	if e == nil || !isUnavailable(err) || errors.As(err, &unavailable) && unavailable.Stopped {
		return err
	}
	return e
}

// enter waits for a session, and then for a place among the concurrent calls: who
// waits for one server must not take the places of the others. release gives the
// place back.
func (u *Upstream) enter(ctx context.Context, w *waits) (s *session, release func(), err error) {
	for {
		if err = u.wait(ctx, w); err != nil {
			return nil, nil, err
		}
		began := time.Now()
		release, err = u.place(ctx)
		if w.queued += time.Since(began); err != nil {
			return nil, nil, err
		}
		if s = u.current(); s != nil {
			return s, release, nil
		}
		release() // it was lost in the meantime
	}
}

// place waits for a place among the concurrent calls of this upstream, then
// among those of all.
func (u *Upstream) place(ctx context.Context) (release func(), err error) {
	if err := u.spec.Gate.enter(ctx); err != nil {
		return nil, err
	}
	if err := u.spec.AllGate.enter(ctx); err != nil {
		u.spec.Gate.leave()
		var busy *BusyError
		if errors.As(err, &busy) {
			busy.All = true
		}
		return nil, err
	}
	return func() {
		u.spec.AllGate.leave()
		u.spec.Gate.leave()
	}, nil
}

// wait waits for a session. Where nothing is left of the time for that, one that
// is open is still found.
func (u *Upstream) wait(ctx context.Context, w *waits) error {
	if w.limited {
		began := time.Now()
		defer func() { w.left -= time.Since(began) }()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.left)
		defer cancel()
	}
	_, err := u.acquire(ctx)
	return err
}

// afterFailure turns what a link says into an error for the caller. fresh says
// that a fresh session may come at once.
func (u *Upstream) afterFailure(s *session, err error) (out error, fresh bool) {
	var rpc *RPCError
	var large *TooLargeError
	if errors.As(err, &rpc) {
		return rpc, false
	}
	if errors.As(err, &large) {
		return large, false
	}
	var answer *AnswerError
	if errors.As(err, &answer) {
		return answer, false
	}
	var status *statusError
	refused := errors.As(err, &status) && status.refused()
	sent := !errors.Is(err, errNotSent) && !errors.Is(err, errGone) && !refused
	select {
	case <-s.link.done():
		if cause := s.link.cause(); cause != nil {
			err = cause
		}
		return u.lostError(err, sent), true
	default:
	}
	// An answer with an error status is an answer, over both transports of HTTP.
	if status != nil {
		reason := u.spec.clean(status.text, 600)
		if refused {
			return &UnavailableError{State: catalog.Unavailable, Reason: reason, RetryAfter: status.retryAfter}, false
		}
		return &HTTPError{Status: status.code, Reason: reason, RetryAfter: status.retryAfter}, false
	}
	if s.link.traits().oneStream {
		return u.lostError(err, sent), false
	}
	// Over HTTP each request has a connection of its own, and the session lives
	// on; the next health check tells more. In the old transport the answer would
	// come elsewhere: what broke says nothing of it.
	if !sent {
		signal(u.doubts)
		return &UnavailableError{State: catalog.Unavailable, Reason: u.spec.clean(unwrapNotSent(err).Error(), 300)}, false
	}
	return u.lostError(err, sent), s.link.traits().connectionPerRequest
}

func (u *Upstream) lostError(err error, sent bool) error {
	return &LostError{Reason: u.spec.clean(unwrapNotSent(err).Error(), 600), MayHaveRun: sent, CrashLoop: u.Status().CrashLoop}
}

// unwrapNotSent leaves out the mark, which is no text for a reader.
func unwrapNotSent(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			if one != errNotSent {
				return one
			}
		}
	}
	return err
}
