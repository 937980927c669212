package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"mcpx/internal/catalog"
	"mcpx/internal/wire"
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
	// busyPatience is how many times the threshold of health checks applies while
	// calls are under way: a server that does one thing at a time answers no check
	// while it works.
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
	loop := "" // what the agent is told while a crash loop lasts
	spec, framing := u.spec, wire.Newline
	if spec.ContentLength {
		framing = wire.ContentLength
	}
	for ctx.Err() == nil {
		began := time.Now()
		s, err := u.connect(ctx, &spec, framing, loop)
		if ctx.Err() != nil {
			if s != nil {
				s.close()
			}
			return
		}
		if err != nil {
			pause = min(max(2*pause, firstPause), longPause)
			wait := u.failed(err, jitter(pause))
			// The other way of speaking is tried next: without the probe, or
			// with it; framed by headers, where lines were not answered.
			spec.Legacy = !spec.Legacy && spec.Type == Stdio
			if !u.spec.ContentLength && !u.spec.NewlineOnly && spec.Type == Stdio && time.Since(began) >= spec.ConnectTimeout {
				framing = wire.ContentLength - framing
			}
			u.pause(ctx, wait)
			continue
		}
		spec.Legacy, pause = !s.modern, 0
		err = u.watch(ctx, s, loop != "")
		if ctx.Err() != nil {
			s.link.fail(errStopped)
			s.close()
			return
		}
		// Open calls end now; to end the process can take a while.
		s.link.fail(err)
		err = s.ended(err)
		now := time.Now()
		losses = append(recent(losses, now), now)
		wait := restartPause(len(losses))
		if loop = ""; len(losses) >= loopLosses {
			loop = fmt.Sprintf("crash loop, %d losses within a minute: ", len(losses)) + u.spec.clean(err.Error(), 800)
		}
		u.lost(err, loop, wait)
		s.close()
		u.pause(ctx, wait)
	}
}

// restartPause is the pause after so many losses within the loop's window. A
// first crash restarts at once.
func restartPause(losses int) time.Duration {
	if losses <= 1 {
		return 0
	}
	pause := longPause
	if doublings := losses - 2; doublings < 10 {
		pause = min(firstPause<<doublings, longPause)
	}
	if losses >= loopLosses {
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

// connect opens a session, reads the catalogue, and publishes both.
// loop is the reason of a crash loop that is not over yet.
func (u *Upstream) connect(parent context.Context, spec *Spec, framing wire.Framing, loop string) (*session, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(parent, spec.ConnectTimeout)
	defer cancel()
	s, err := open(ctx, spec, framing)
	if err != nil {
		return nil, err
	}
	var tools []catalog.Tool
	var faults []string
	if !spec.NoCatalogue {
		if tools, faults, err = s.listTools(ctx); err != nil {
			if parent.Err() == nil && ctx.Err() != nil {
				err = errors.New("no answer to tools/list within " + spec.ConnectTimeout.String())
			} else {
				err = s.ended(err)
			}
			s.close()
			return nil, err
		}
	}
	u.spec.Logger.Info("connected", "protocol", s.version, "tools", len(tools), "title", u.spec.clean(s.title, 80))
	for _, fault := range faults {
		u.spec.Logger.Warn("tool refused", "fault", u.spec.clean(fault, 300))
	}
	s.listenForChanges()
	u.mu.Lock()
	u.session = s
	u.succeed = time.Now()
	u.mu.Unlock()
	u.update(func(st *Status) {
		st.State, st.Reason, st.RetryAfter = catalog.Ready, "", time.Time{}
		if loop != "" {
			st.State, st.Reason = catalog.Degraded, loop
		}
		st.Protocol, st.Modern, st.Took = s.version, s.modern, time.Since(began)
		st.Title, st.Version, st.Instructions = s.title, s.release, s.instructions
		if !spec.NoCatalogue {
			st.list(tools, faults)
		}
	})
	return s, nil
}

// list takes over a catalogue. One that says the same as the last leaves the
// old slice in place, by which others see that nothing changed.
func (st *Status) list(tools []catalog.Tool, faults []string) {
	same := func(a, b catalog.Tool) bool { return bytes.Equal(a.Raw, b.Raw) }
	if !st.Known || !slices.EqualFunc(st.Tools, tools, same) {
		st.Tools = tools
	}
	st.Known, st.Faults = true, faults
}

// failed publishes a failed attempt and returns the wait until the next.
func (u *Upstream) failed(err error, wait time.Duration) time.Duration {
	var status *statusError
	if errors.As(err, &status) {
		wait = max(wait, min(status.retryAfter, 10*time.Minute))
	}
	reason := u.spec.clean(unwrapNotSent(err).Error(), 900)
	u.spec.Logger.Warn("connecting failed", "err", reason, "retry_in", wait.Round(time.Millisecond))
	u.update(func(st *Status) {
		st.State, st.Reason, st.RetryAfter = catalog.Unavailable, reason, time.Now().Add(wait)
	})
	return wait
}

// lost publishes the end of a session. The state is connecting: whoever calls
// now waits for the fresh session. In a crash loop it is degraded, and says so.
func (u *Upstream) lost(err error, loop string, wait time.Duration) {
	reason := u.spec.clean(err.Error(), 900)
	u.spec.Logger.Warn("session lost", "err", reason, "crash_loop", loop != "")
	u.mu.Lock()
	u.session = nil
	u.mu.Unlock()
	u.update(func(st *Status) {
		st.Restarts++
		st.State, st.Reason = catalog.Connecting, reason
		if loop != "" {
			st.State, st.Reason, st.RetryAfter = catalog.Degraded, loop, time.Now().Add(wait)
		}
	})
}

// watch returns when the session is of no more use, with the reason.
// After a crash loop the server counts as degraded until it has held out for
// the loop's window.
func (u *Upstream) watch(ctx context.Context, s *session, looped bool) error {
	var calm <-chan time.Time
	if looped {
		timer := time.NewTimer(loopWindow)
		defer timer.Stop()
		calm = timer.C
	}
	var health <-chan time.Time
	if u.spec.Health.Interval > 0 {
		ticker := time.NewTicker(u.spec.Health.Interval)
		defer ticker.Stop()
		health = ticker.C
	}
	defer s.relistAgain.Stop()
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.link.done():
			return s.link.cause()
		case <-s.listChanged:
			if err := u.relist(ctx, s); err != nil {
				return err
			}
		case <-s.relistAgain.C:
			s.changed()
		case <-calm:
			u.update(func(st *Status) { st.State, st.Reason = catalog.Ready, "" })
		case <-health:
			if u.succeededWithin(u.spec.Health.Interval) {
				failures = u.healthy(failures)
				continue
			}
			err := u.check(ctx, s)
			if err == nil {
				failures = u.healthy(failures)
				continue
			}
			threshold := u.spec.Health.Threshold
			if s.busy() {
				threshold *= busyPatience
			}
			if failures++; failures >= threshold {
				return errors.New("health check failed: " + err.Error())
			}
			u.update(func(st *Status) {
				st.State, st.Reason = catalog.Degraded, u.spec.clean("health check failed: "+err.Error(), 300)
			})
		}
	}
}

func (u *Upstream) healthy(failures int) int {
	if failures > 0 {
		u.update(func(st *Status) { st.State, st.Reason = catalog.Ready, "" })
	}
	return 0
}

func (u *Upstream) succeededWithin(d time.Duration) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Since(u.succeed) < d
}

func (u *Upstream) succeeded() {
	u.mu.Lock()
	u.succeed = time.Now()
	u.mu.Unlock()
}

func (u *Upstream) check(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, u.spec.Health.Timeout)
	defer cancel()
	err := s.ping(ctx)
	if err != nil && ctx.Err() != nil {
		return errors.New("no answer within " + u.spec.Health.Timeout.String())
	}
	return err
}

// relist refreshes the catalogue after list_changed. Notifications that come
// while it gathers or reads are one refresh more, at most one a second: what a
// storm costs is bounded. A failed refresh keeps the old catalogue.
func (u *Upstream) relist(ctx context.Context, s *session) error {
	if u.spec.NoCatalogue {
		return nil
	}
	if !sleep(ctx, coalesce) {
		return ctx.Err()
	}
	select {
	case <-s.listChanged:
	default:
	}
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, u.spec.ConnectTimeout)
	tools, faults, err := s.listTools(bounded)
	cancel()
	if err != nil {
		select {
		case <-s.link.done():
			return s.link.cause()
		default:
		}
		u.spec.Logger.Warn("refreshing the catalogue", "err", u.spec.clean(err.Error(), 300))
		s.relistAgain.Reset(relistRetry)
	} else {
		u.update(func(st *Status) { st.list(tools, faults) })
	}
	timer := time.NewTimer(max(0, relistPause-time.Since(began)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.link.done():
	case <-ctx.Done():
	}
	return nil
}
