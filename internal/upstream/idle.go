package upstream

import (
	"context"
	"errors"
	"math"
	"time"

	"mcpx/internal/base/catalog"
)

// errUnused ends a session that was not used for the configured time, or that was opened only to read the catalogue.
var errUnused = errors.New("the server was not used for a while")

// Ask records that the upstream is needed. An idle upstream then connects; an upstream that waits for its turn to install
// moves to the front of the queue.
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

// Prefer moves an upstream that waits for its turn to install to the front of the queue, because a caller waits for it. Unlike Ask,
// Prefer does not wake an idle upstream.
func (u *Upstream) Prefer() { signal(u.hurry) }

// sleep returns when the upstream is no longer idle, or ctx ends.
func (u *Upstream) sleep(ctx context.Context) {
	u.awaitStatus(ctx, func() bool { return u.status.State != catalog.Idle })
}

// useLeft returns how much longer the session stays open if no more requests come.
func (u *Upstream) useLeft() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.useLeftLocked()
}

func (u *Upstream) useLeftLocked() time.Duration {
	switch {
	case u.spec.Lazy && !u.asked: // the session was opened only to read the catalogue
		return 0
	case u.spec.StopIdle > 0 && u.open > 0:
		return u.spec.StopIdle
	case u.spec.StopIdle > 0:
		return u.spec.StopIdle - time.Since(u.used)
	}
	return math.MaxInt64
}

// rest marks the upstream as idle and returns true, unless the session is to stay open for longer (see useLeft). If it returns
// true, the caller must end the session.
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
	u.spec.Logger.Info("stopped, as it was not used")
	u.spec.OnChange()
	return true
}
