package upstream

import (
	"cmp"
	"context"
	"time"

	"mcpx/internal/base/catalog"
)

// startsNow records whether the server's command is now installing its program or starting.
func (u *Upstream) startsNow(isStarting bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.status.isStarting != isStarting {
		u.status.isStarting = isStarting
		u.wake()
	}
}

// starting reports whether the command installs or starts now. activity says in words which of the two it does.
func (u *Upstream) starting() (activity string, isStarting bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	activity = "starts"
	if u.status.Installing {
		activity = cmp.Or(u.status.Reason, activity)
	}
	return activity, u.status.isStarting && !u.stopped
}

// startWait is one wait for a session. It ends when the channel timeout gets a value. But if the func starting is set, the wait
// goes on after the timeout while the server's command installs or starts. It always ends with its context.
type startWait struct {
	timeout  <-chan time.Time // nil means no limit
	starting func(activity string)
	ticks    <-chan time.Time
	late     bool // the channel timeout has sent its value
}

// tellEvery is the time between two calls of startWait.starting.
const tellEvery = 5 * time.Second

// tick begins a ticker, so that the method next calls the func starting every tellEvery. The caller must call stop.
func (w *startWait) tick() (stop func()) {
	if w.starting == nil {
		return func() {}
	}
	ticker := time.NewTicker(tellEvery)
	w.ticks = ticker.C
	return ticker.Stop
}

// next waits until the status of u changes, the channel timeout gets a value, or tellEvery has passed. It returns false
// if the whole wait has ended. isStarting says whether the command was installing or starting when the caller last read
// the status.
func (w *startWait) next(ctx context.Context, u *Upstream, changed <-chan struct{}, isStarting bool) bool {
	if w.late && (w.starting == nil || !isStarting) {
		return false
	}
	select {
	case <-changed:
	case <-w.timeout:
		w.late = true
	case <-w.ticks:
		if activity, isStarting := u.starting(); isStarting {
			w.starting(activity)
		}
	case <-ctx.Done():
		return false
	}
	return true
}

// AwaitStart waits while the upstream connects, but at most for the time limit. If starting is not nil, AwaitStart then
// waits on while the command installs or starts, in all at most for Timeouts.Call (or limit, if that is longer). Every 5 s
// it calls starting with a text that says what the command does.
func (u *Upstream) AwaitStart(ctx context.Context, limit time.Duration, starting func(activity string)) {
	ctx, cancel := context.WithTimeout(ctx, max(limit, u.spec.Timeouts.Call))
	defer cancel()
	wait := startWait{timeout: time.After(limit), starting: starting}
	defer wait.tick()()
	for {
		u.mu.Lock()
		over, changed, isStarting := u.stopped || u.status.State != catalog.Connecting, u.changed, u.status.isStarting
		u.mu.Unlock()
		if over || !wait.next(ctx, u, changed, isStarting) {
			return
		}
	}
}
