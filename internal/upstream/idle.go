package upstream

import (
	"context"
	"errors"
	"math"
	"time"

	"mcpx/internal/base/catalog"
)

// errUnused ends a session that nobody needs.
var errUnused = errors.New("nobody has used the server for a while")

// Ask says that somebody needs the upstream: one that is idle connects, and one that
// waits in a line comes first.
func (u *Upstream) Ask() {
	u.mu.Lock()
	woken := u.status.State == catalog.Idle && !u.stopped
	if woken {
		u.status.State = catalog.Connecting
		u.wake()
	}
	u.asked, u.used = true, time.Now()
	u.mu.Unlock()
	u.Prefer()
	if woken {
		u.spec.OnChange()
	}
}

// Prefer says that somebody waits for the upstream. It wakes none that is idle.
func (u *Upstream) Prefer() { signal(u.hurry) }

// sleep returns when the upstream is not idle, or with ctx.
func (u *Upstream) sleep(ctx context.Context) {
	for {
		u.mu.Lock()
		state, changed := u.status.State, u.changed
		u.mu.Unlock()
		if state != catalog.Idle {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// useLeft is the time until a session is ended that nobody uses from now on.
func (u *Upstream) useLeft() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.useLeftLocked()
}

func (u *Upstream) useLeftLocked() time.Duration {
	switch {
	case u.spec.Lazy && !u.asked: // it was started for its catalogue
		return 0
	case u.spec.StopIdle > 0 && u.open > 0:
		return u.spec.StopIdle
	case u.spec.StopIdle > 0:
		return u.spec.StopIdle - time.Since(u.used)
	}
	return math.MaxInt64
}

// rest makes the upstream idle, unless it is in use. The caller ends the session.
func (u *Upstream) rest() bool {
	u.mu.Lock()
	if u.useLeftLocked() > 0 {
		u.mu.Unlock()
		return false
	}
	u.session = nil
	u.status.State, u.status.Reason, u.status.CrashLoop = catalog.Idle, "", false
	u.wake()
	u.mu.Unlock()
	u.spec.Logger.Info("stopped, as nobody uses it")
	u.spec.OnChange()
	return true
}
