package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/transport"
)

const (
	firstPause = 200 * time.Millisecond
	longPause  = 60 * time.Second
	// coalesce is how long list_changed notifications are gathered.
	coalesce = 100 * time.Millisecond
	// relistPause is the least time between two refreshes of one catalogue.
	relistPause = time.Second
	// relistRetry is when a failed refresh is tried again.
	relistRetry = 30 * time.Second
	// busyPatience is how many times the threshold of health checks applies over
	// HTTP while calls are under way: a server that does one thing at a time answers
	// no check while it works.
	busyPatience = 3
	// A crash loop is so many losses within so long; then restarts are at least
	// loopPause apart.
	loopLosses = 5
	loopWindow = 60 * time.Second
	loopPause  = 5 * time.Second
)

// supervise owns the session: it connects, watches, and connects again, until
// ctx ends.
func (u *Upstream) supervise(ctx context.Context) {
	pause := time.Duration(0) // after failed attempts
	var losses []time.Time
	var t degradation
	spec := u.spec
	for u.sleep(ctx); ctx.Err() == nil; u.sleep(ctx) {
		s, err := u.connectAny(ctx, &spec, t)
		if ctx.Err() != nil {
			if s != nil {
				s.close()
			}
			return
		}
		if err != nil {
			t.health = "" // it told of a session that was
			// A process may have ended because of the probe, and one that has changed
			// its era because there was none: the other way is tried next.
			spec.Legacy = !spec.Legacy && spec.Type == transport.Stdio
			pause = min(max(2*pause, firstPause), longPause)
			wait := u.failed(err, jitter(pause))
			_, silent := errors.AsType[*silenceError](err)
			u.dialer.Failed(silent)
			u.pause(ctx, wait)
			continue
		}
		spec.Legacy, pause = !s.Modern, 0
		if t.loop == "" {
			u.warned = ""
		}
		w := &watcher{u: u, s: s, degradation: t}
		err = w.watch(ctx)
		if ctx.Err() != nil {
			err = errStopped
		}
		if err == errStopped || err == errUnused { // nothing was lost
			s.link.Life().Fail(err)
			s.close()
			t = degradation{loop: w.loop}
			continue
		}
		select { // who asked for an attempt had a session
		case <-u.kick:
		default:
		}
		losses = append(recent(losses, time.Now()), time.Now())
		t = w.degradation
		u.pause(ctx, u.endLost(s, err, &t, len(losses)))
	}
}

// endLost ends a session that was lost, one of so many lately, and returns the wait
// until the next.
func (u *Upstream) endLost(s *session, err error, t *degradation, losses int) time.Duration {
	// Open calls end now; to end the process can take a while.
	s.link.Life().Fail(err)
	err = s.ended(err)
	t.lost(losses, u.spec.reason(err))
	wait := restartPause(losses, t.loop != "")
	u.lost(err, *t, wait)
	s.close()
	return wait
}

// degradation is why a server counts as degraded though it answers; what is empty
// is no trouble.
type degradation struct {
	loop   string // it crashed again and again, and has not held out since
	health string // its last health check failed
}

// lost takes in the end of a session, one of so many losses within the loop's
// window. A crash loop goes on until a session holds out for that window.
func (t *degradation) lost(losses int, reason string) {
	switch {
	case losses >= loopLosses:
		t.loop = fmt.Sprintf("crash loop, %d losses within a minute: %s", losses, reason)
	case t.loop != "":
		t.loop = "crash loop, lost again: " + reason
	}
}

// publish says in a status the state of a server that answers, degraded or not.
func (t degradation) publish(st *Status) {
	st.State, st.Reason, st.CrashLoop = catalog.Ready, "", t.loop != ""
	if t.loop != "" || t.health != "" {
		st.State, st.Reason = catalog.Degraded, t.loop
	}
	if t.health != "" {
		st.Reason = strings.TrimPrefix(t.loop+"; "+t.health, "; ")
	}
}

// restartPause is the pause after so many losses within the loop's window. A
// first crash restarts at once, unless a crash loop lasts.
func restartPause(losses int, looped bool) time.Duration {
	pause := time.Duration(0)
	if losses > 1 {
		pause = longPause
		if doublings := losses - 2; doublings < 10 {
			pause = min(firstPause<<doublings, longPause)
		}
	}
	if looped {
		pause = max(pause, loopPause)
	}
	return jitter(pause)
}

// recent drops the losses that lie before the window.
func recent(losses []time.Time, now time.Time) []time.Time {
	for len(losses) > 0 && now.Sub(losses[0]) > loopWindow {
		losses = losses[1:]
	}
	return losses
}

// jitter spreads d by a fifth, so that many upstreams of one host do not come
// back in step.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

func (u *Upstream) pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-u.kick:
	case <-ctx.Done():
	}
}

// connectAny is connect at the first address of the server that answers.
func (u *Upstream) connectAny(ctx context.Context, spec *Spec, t degradation) (s *session, err error) {
	addresses := len(spec.Remote.URLs)
	for range max(addresses, 1) {
		if s, err = u.connect(ctx, spec, t); err == nil || ctx.Err() != nil || addresses == 0 {
			return s, err
		}
		err = fmt.Errorf("none of its %d instances answers; %s: %w", addresses, transport.HostOf(u.dialer.Address()), err)
		u.dialer.NextAddress()
	}
	return nil, err
}

// connect opens a session, reads the catalogue, and publishes both. t are the
// troubles that are not over yet.
func (u *Upstream) connect(parent context.Context, spec *Spec, t degradation) (*session, error) {
	s, took, left, err := u.attempt(parent, spec)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(parent, left)
	defer cancel()
	s.listen()
	var tools []catalog.Tool
	var faults []string
	if !spec.Catalogue.Elsewhere {
		s.beforeListing(ctx)
		if tools, faults, err = s.listTools(ctx); err != nil {
			if parent.Err() == nil && ctx.Err() != nil {
				err = errors.New("no answer to tools/list within " + spec.Timeouts.Connect.String())
			} else {
				err = s.ended(err)
			}
			s.close()
			return nil, err
		}
	}
	s.relisting.taken()
	u.spec.Logger.Info("connected", "protocol", s.Protocol, "tools", len(tools), "title", u.spec.Secrets.Line(s.Title, 80))
	for _, fault := range faults {
		u.spec.Logger.Warn("tool refused", "fault", u.spec.Secrets.Line(fault, 300))
	}
	spec.Seen = true
	u.update(func(st *Status) {
		u.session, u.succeed, u.used = s, time.Now(), time.Now()
		t.publish(st)
		st.Installing = false
		st.RetryAfter = time.Time{}
		st.Agreement, st.Took = s.Agreement, took+time.Since(began)
		if !spec.Catalogue.Elsewhere {
			u.adopt(st, s, tools, faults)
			st.adoptOffers(s.offers)
		}
	})
	if !spec.Catalogue.Elsewhere && len(s.offers.Kinds()) > 0 {
		s.changes.tell(s.offers.Kinds()...)
	}
	return s, nil
}

// adopt makes what s has listed the catalogue, unless it is a part only and there is
// a whole one. The caller holds the lock.
func (u *Upstream) adopt(st *Status, s *session, tools []catalog.Tool, faults []string) {
	if s.relisting.missing != nil && st.Known && u.whole {
		st.Faults = faults
		s.mirrorHeaders(st.Tools)
		return
	}
	u.whole = s.relisting.missing == nil
	st.list(tools, faults)
}

// failed publishes a failed attempt and returns the wait until the next.
func (u *Upstream) failed(err error, wait time.Duration) time.Duration {
	wait = max(wait, transport.RetryAfterOf(err))
	reason := u.spec.reason(err)
	u.spec.Logger.Log(context.Background(), u.news(reason), "connecting failed", "err", reason, "retry_in", wait.Round(time.Millisecond))
	u.update(func(st *Status) {
		st.State, st.Reason, st.RetryAfter = catalog.Unavailable, reason, time.Now().Add(wait)
		st.Installing = false
	})
	return wait
}

// news is the level at which a failure is logged: one that lasts is a warning once,
// until a session holds. What only counts or dates in it makes it no other one.
func (u *Upstream) news(reason string) slog.Level {
	reason = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, reason)
	if reason == u.warned {
		return slog.LevelDebug
	}
	u.warned = reason
	return slog.LevelWarn
}

// lost publishes the end of a session. The state is connecting: whoever calls
// now waits for the fresh session. A server in trouble is degraded, and says so.
func (u *Upstream) lost(err error, t degradation, wait time.Duration) {
	reason := u.spec.reason(err)
	level := slog.LevelWarn
	if t.loop != "" {
		level = u.news(reason)
	}
	u.spec.Logger.Log(context.Background(), level, "session lost", "err", reason, "crash_loop", t.loop != "")
	u.update(func(st *Status) {
		u.session = nil
		st.Restarts++
		if t.publish(st); st.State == catalog.Ready {
			st.State, st.Reason = catalog.Connecting, reason
			return
		}
		st.RetryAfter = time.Now().Add(wait)
	})
}
