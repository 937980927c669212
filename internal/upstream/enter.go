package upstream

import (
	"context"
	"errors"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/request"
)

// errStopped ends the session of an upstream that is closed. Its text is also the reason in the error that stoppedError returns.
var errStopped = errors.New("mcpx stopped the server")

// waits says how long a request has waited and may still wait, over all attempts to send it.
type waits struct {
	owner   string // the principal that sent the request, for the concurrency limits; empty for none
	limited bool
	left    time.Duration // how long the request may still wait for a session; used only if limited is true
	// starting is called every few seconds while the request waits because the server's command still installs its program or
	// starts. May be nil.
	starting func(activity string)
	queued   time.Duration // how long the request waited because too many other calls were open
}

// begin counts a request as open. It fails once the upstream is stopped. If it succeeds, the caller must call the
// method finished.
func (u *Upstream) begin() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stopped {
		return stoppedError()
	}
	u.open++
	u.asked = true
	return nil
}

func (u *Upstream) finished() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open--
	if u.spec.StopIdle > 0 {
		u.used = time.Now()
	}
	if u.stopped && u.open == 0 {
		close(u.idle)
	}
}

func stoppedError() error {
	return &request.UnavailableError{State: catalog.Unavailable, Reason: errStopped.Error(), Stopped: true}
}

// enter waits for a session, then until the concurrency limits of this upstream and of all upstreams together permit
// another call. Because it waits for the session first, a request without a session does not use up the limits that
// other upstreams share. If enter succeeds, the caller must call the method leave.
func (u *Upstream) enter(ctx context.Context, w *waits) (*session, error) {
	for {
		if u.current() == nil {
			if err := u.awaitSession(ctx, w); err != nil {
				return nil, err
			}
		}
		began := time.Now()
		err := u.spec.Concurrency.enter(ctx, w.owner)
		if w.queued += time.Since(began); err != nil {
			return nil, err
		}
		if s := u.current(); s != nil {
			return s, nil
		}
		u.leave(w) // the session was lost while the call waited for the limits
	}
}

func (u *Upstream) leave(w *waits) { u.spec.Concurrency.leave(w.owner) }

// enter waits until the limits Gate and All both permit another call.
func (c *Concurrency) enter(ctx context.Context, owner string) error {
	if err := c.Gate.Enter(ctx, owner); err != nil {
		return err
	}
	err := c.All.Enter(ctx, owner)
	if err == nil {
		return nil
	}
	c.Gate.Leave(owner)
	if busy, ok := errors.AsType[*semaphore.BusyError](err); ok {
		busy.All = true
	}
	return err
}

func (c *Concurrency) leave(owner string) {
	c.All.Leave(owner)
	c.Gate.Leave(owner)
}

// current returns the open session; nil if there is none, its link has ended, or the upstream is stopped.
func (u *Upstream) current() *session {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stopped || u.session == nil || u.session.link.Life().Cause() != nil {
		return nil
	}
	return u.session
}

// awaitSession waits until a session is open. It wakes an idle upstream. If the upstream is unavailable or stopped, awaitSession
// fails at once. Otherwise it fails when ctx ends, or when the time w.left has passed. startWait says when it waits longer than
// that.
func (u *Upstream) awaitSession(ctx context.Context, w *waits) error {
	wait := startWait{starting: w.starting}
	if w.limited {
		began := time.Now()
		defer func() { w.left -= time.Since(began) }()
		wait.timeout = time.After(w.left)
	}
	defer wait.tick()()
	for {
		u.mu.Lock()
		s, status, changed, stopped, isStarting := u.session, u.status, u.changed, u.stopped, u.status.isStarting
		u.mu.Unlock()
		switch {
		case stopped:
			return stoppedError()
		case s != nil && s.link.Life().Cause() == nil:
			return nil
		case s != nil: // the session is lost, but the supervising goroutine has not noticed yet
			status.State, status.Reason = catalog.Connecting, u.spec.reason(s.link.Life().Cause())
		case status.State == catalog.Idle:
			u.Ask()
			continue
		case status.State != catalog.Connecting && status.State != catalog.Degraded:
			return status.Unavailable()
		default:
			u.Prefer()
		}
		if !wait.next(ctx, u, changed, isStarting) {
			return status.Unavailable()
		}
	}
}
