package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/delay"
	"mcpx/internal/transport"
)

const (
	firstPause = 200 * time.Millisecond
	longPause  = 60 * time.Second
	// coalesce is how long list_changed notifications are collected before the lists are read.
	coalesce = 100 * time.Millisecond
	// relistPause is the least time between two runs of the method relist.
	relistPause = time.Second
	// If mcpx could not read a page of a list, it reads that list again after relistRetry.
	relistRetry = 30 * time.Second
	// While calls are open, busyPatience times as many health checks as usual may fail before the session ends, since a server
	// that handles one request at a time does not answer checks while it works. This is for servers that mcpx has not started
	// itself.
	busyPatience = 3
	// loopLosses lost sessions within loopWindow are a crash loop. The pause before a restart is then at least about loopPause.
	loopLosses = 5
	loopWindow = 60 * time.Second
	loopPause  = 5 * time.Second
)

// supervise owns the session: it connects, watches the session and reconnects, until ctx ends.
func (u *Upstream) supervise(ctx context.Context) {
	pause := time.Duration(0) // grows with each failed attempt, up to longPause
	var losses []time.Time
	var t degradation
	spec := u.spec
	for u.sleep(ctx); ctx.Err() == nil; u.sleep(ctx) {
		u.startsNow(spec.Launch.Command != "")
		s, err := u.connectAny(ctx, &spec, t)
		if ctx.Err() != nil {
			if s != nil {
				s.close()
			}
			return
		}
		if err != nil {
			t.health = "" // the failed health check concerned the last session
			// A process may have exited because of the unknown method server/discover. Or its era has changed, and it exited
			// because of initialize. So the next attempt begins with the other of the two methods. With other transports, the
			// next attempt finds out the era anew.
			if spec.Era != EraLegacy && spec.Type == transport.Stdio {
				spec.Era = EraLegacy
			} else {
				spec.Era = ""
			}
			pause = min(max(2*pause, firstPause), longPause)
			wait := u.failed(err, jitter(pause))
			u.startsNow(false)
			_, silent := errors.AsType[*silenceError](err)
			u.dialer.Failed(silent)
			delay.Until(ctx, wait, u.kick, nil)
			continue
		}
		u.startsNow(false)
		spec.Era, pause = s.Era(), 0
		if t.loop == "" {
			u.warned = ""
		}
		w := &watcher{u: u, s: s, degradation: t}
		err = w.watch(ctx)
		if ctx.Err() != nil {
			err = errStopped
		}
		if err == errStopped || err == errUnused { // mcpx ended the session itself
			s.link.Life().Fail(err)
			s.close()
			t = degradation{loop: w.loop}
			continue
		}
		select { // a Retry from before the loss has no effect any more
		case <-u.kick:
		default:
		}
		if u.spec.Arrived != nil { // the server itself dials in again when it can, so a pause would only delay calls
			losses = nil
		}
		losses = append(slices.DeleteFunc(losses, func(at time.Time) bool { return time.Since(at) > loopWindow }), time.Now())
		t = w.degradation
		delay.Until(ctx, u.endLost(s, err, &t, len(losses)), u.kick, nil)
	}
}

// endLost ends a lost session and returns the pause before the next attempt. losses is how many sessions were lost within
// loopWindow; for a server that dials in it is always 1.
func (u *Upstream) endLost(s *session, err error, t *degradation, losses int) time.Duration {
	// Open calls fail now; the end of the process can take a while.
	s.link.Life().Fail(err)
	err = s.ended(err)
	t.lost(losses, u.spec.reason(err))
	wait := restartPause(losses, t.loop != "")
	u.lost(err, *t, wait)
	s.close()
	return wait
}

// degradation says why a server is degraded. An empty field means that the server has no such trouble.
type degradation struct {
	loop   string // says that sessions were lost again and again; cleared when a session has lasted for loopWindow
	health string // says that the last health check failed; the next session inherits it if no check in this session has succeeded
}

// lost records the end of a session. losses is as in endLost. A crash loop ends when a session lasts for loopWindow.
func (t *degradation) lost(losses int, reason string) {
	switch {
	case losses >= loopLosses:
		t.loop = fmt.Sprintf("crash loop, %d losses within a minute: %s", losses, reason)
	case t.loop != "":
		t.loop = "crash loop, lost again: " + reason
	}
}

// publish sets the state, ready or degraded, and the reason. (For a lost session, the method lost of Upstream then changes
// ready to connecting.)
func (t degradation) publish(st *Status) {
	st.State, st.Reason, st.CrashLoop = catalog.Ready, "", t.loop != ""
	if t.loop != "" || t.health != "" {
		st.State, st.Reason = catalog.Degraded, t.loop
	}
	if t.health != "" {
		st.Reason = strings.TrimPrefix(t.loop+"; "+t.health, "; ")
	}
}

// restartPause returns the pause after the given number of losses within loopWindow. After the first loss there is no
// pause, unless the server is in a crash loop.
func restartPause(losses int, looped bool) time.Duration {
	pause := time.Duration(0)
	if losses > 1 {
		pause = min(firstPause<<min(losses-2, 10), longPause)
	}
	if looped {
		pause = max(pause, loopPause)
	}
	return jitter(pause)
}

// jitter changes d by up to a tenth, so that the upstreams of one host do not reconnect all at once.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

// connectAny connects to the first address of the server that works. It tries each address once.
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

// connect opens a session, reads its tools (unless [Catalogue.Shared] has them), and publishes both. t is the degradation that the
// new session inherits from earlier sessions. The list of tools may take Timeouts.Connect, however long the handshake took (see
// attempt), as a slow server is slow at both.
func (u *Upstream) connect(parent context.Context, spec *Spec, t degradation) (*session, error) {
	s, took, err := u.attempt(parent, spec)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(parent, spec.Timeouts.Connect)
	defer cancel()
	s.listen()
	var tools []catalog.Tool
	var faults []string
	lists := spec.Catalogue.Shared == nil
	s.awaitStream(ctx)
	if lists {
		if tools, faults, err = s.listTools(ctx); err != nil {
			if parent.Err() == nil && ctx.Err() != nil {
				err = errors.New("no answer to tools/list within " + spec.Timeouts.Connect.String())
			}
			s.close()
			return nil, err
		}
	}
	s.relisting.taken()
	for _, fault := range faults {
		u.spec.Logger.Warn("tool refused", "fault", u.spec.Secrets.Line(fault, 300))
	}
	spec.StartedBefore = true
	u.update(func(st *Status) {
		u.session, u.succeed, u.used = s, time.Now(), time.Now()
		t.publish(st)
		st.Installing = false
		st.RetryAfter = time.Time{}
		st.Agreement, st.Took = s.Agreement, took+time.Since(began)
		if lists {
			u.adopt(st, s, tools, faults)
			st.adoptOffers(s.offers)
		} else {
			st.Offers = s.offers
		}
	})
	// Readers of the log rely on this line: from now on the session takes calls and notifications. So it is not logged
	// earlier.
	u.spec.Logger.Info("connected", "protocol", s.Protocol, "tools", len(tools), "title", u.spec.Secrets.Line(s.Title, 80))
	if lists && len(s.offers.Kinds()) > 0 {
		s.changes.tell(s.offers.Kinds()...)
	}
	return s, nil
}

// adopt publishes the tools that s has listed. An incomplete list does not replace a complete one that a session has read. The
// caller holds u.mu.
func (u *Upstream) adopt(st *Status, s *session, tools []catalog.Tool, faults []string) {
	if s.relisting.missing != nil && st.Known && u.whole {
		st.Faults = faults
		s.mirrorHeaders(st.Tools)
		return
	}
	u.whole = s.relisting.missing == nil
	st.list(tools, faults)
}

// failed publishes a failed attempt and returns the pause before the next attempt. The pause is wait, or longer if the
// server requests that; it is 0 for a server that dials in.
func (u *Upstream) failed(err error, wait time.Duration) time.Duration {
	wait = max(wait, transport.RetryAfterOf(err))
	reason := u.spec.reason(err)
	if u.spec.Arrived != nil { // the next attempt begins when the server has dialled in again
		u.spec.Logger.Log(context.Background(), u.levelOf(reason), "connecting failed", "err", reason)
		u.update(func(st *Status) { st.State, st.Reason = catalog.Connecting, reason })
		return 0
	}
	u.spec.Logger.Log(context.Background(), u.levelOf(reason), "connecting failed", "err", reason, "retry_in", wait.Round(time.Millisecond))
	u.update(func(st *Status) {
		st.State, st.Reason, st.RetryAfter = catalog.Unavailable, reason, time.Now().Add(wait)
		st.Installing = false
	})
	return wait
}

// levelOf returns the level at which a failure is logged: debug if the last warning was the same apart from digits, otherwise
// warning. u.warned keeps the last warning until the server has connected without being in a crash loop.
func (u *Upstream) levelOf(reason string) slog.Level {
	if transport.SameWords(reason, u.warned) {
		return slog.LevelDebug
	}
	u.warned = reason
	return slog.LevelWarn
}

// lost publishes the end of a session. If t says that the server is in trouble, the state becomes degraded, and the next
// attempt is due after the time wait. Otherwise the state becomes connecting, so that new calls wait for the fresh session.
func (u *Upstream) lost(err error, t degradation, wait time.Duration) {
	reason := u.spec.reason(err)
	level := slog.LevelWarn
	if t.loop != "" {
		level = u.levelOf(reason)
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
