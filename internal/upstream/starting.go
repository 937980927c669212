package upstream

import (
	"cmp"
	"context"
	"time"

	"mcpx/internal/base/catalog"
)

// startsNow records that the command installs or starts, or no longer does.
func (u *Upstream) startsNow(starts bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.status.starts != starts {
		u.status.starts = starts
		u.wake()
	}
}

// starting reports whether the command installs or starts, and what it does.
func (u *Upstream) starting() (does string, starts bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	does = "starts"
	if u.status.Installing {
		does = cmp.Or(u.status.Reason, does)
	}
	return does, u.status.starts && !u.stopped
}

// startWait is one wait for a session. It ends when the channel over gets a value. But if the func starting is set,
// it continues after that while the server's command installs or starts.
type startWait struct {
	over     <-chan time.Time // nil means no limit
	starting func(does string)
	ticks    <-chan time.Time
	late     bool // the channel over has sent its value
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

// next waits until the status of u changes, the channel over gets a value, or tellEvery has passed. It returns false
// if the whole wait has ended. starts says whether the command was installing or starting when the caller last
// looked.
func (w *startWait) next(ctx context.Context, u *Upstream, changed <-chan struct{}, starts bool) bool {
	if w.late && (w.starting == nil || !starts) {
		return false
	}
	select {
	case <-changed:
	case <-w.over:
		w.late = true
	case <-w.ticks:
		if does, starts := u.starting(); starts {
			w.starting(does)
		}
	case <-ctx.Done():
		return false
	}
	return true
}

// AwaitStart waits until the first attempt to connect has succeeded or failed, but at most for the time patience. If
// starting is not nil, it then waits on while the command installs or starts, in all at most for the time of a call.
// It calls starting from time to time with a text that says what the command does.
func (u *Upstream) AwaitStart(ctx context.Context, patience time.Duration, starting func(does string)) {
	ctx, cancel := context.WithTimeout(ctx, max(patience, u.spec.Timeouts.Call))
	defer cancel()
	wait := startWait{over: time.After(patience), starting: starting}
	defer wait.tick()()
	for {
		u.mu.Lock()
		over, changed, starts := u.stopped || u.status.State != catalog.Connecting, u.changed, u.status.starts
		u.mu.Unlock()
		if over || !wait.next(ctx, u, changed, starts) {
			return
		}
	}
}
