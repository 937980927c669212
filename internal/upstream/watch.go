package upstream

import (
	"context"
	"errors"
	"sync"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/delay"
	"mcpx/internal/transport"
)

// watcher watches one open session. It runs in the supervising goroutine.
type watcher struct {
	u *Upstream
	s *session
	degradation
	failures int       // how many health checks failed in a row
	proven   bool      // a health check has succeeded, or was not necessary (see heard)
	pinged   bool      // the server has answered a ping
	unpinged bool      // the server does not answer pings, so tools/list replaces them
	checked  time.Time // when the server last answered a check; zero if it has answered none
	reread   time.Time // when the lists were last requested because changes may have been missed
}

// watch runs until the session has ended or has to be ended, and returns the reason. w.degradation then says in which
// state the next session begins.
func (w *watcher) watch(ctx context.Context) error {
	u, s := w.u, w.s
	var calm <-chan time.Time
	if w.loop != "" {
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
	unused := time.NewTimer(max(0, u.useLeft()))
	defer unused.Stop()
	defer s.relisting.again.Stop()
	again := time.NewTimer(time.Hour) // fires when the lists are to be read because changes may have been missed
	again.Stop()
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.link.Life().Done():
			w.health = ""
			return s.link.Life().Cause()
		case <-unused.C:
			// A server that was started only so that mcpx reads its lists must not be stopped before all lists are read.
			u.relistDue(ctx, s)
			if u.rest() {
				return errUnused
			}
			unused.Reset(max(0, u.useLeft()))
		case <-s.changes.told:
			u.relist(ctx, s)
		case <-s.changes.missed:
			again.Reset(max(0, missedPause-time.Since(w.reread)))
		case <-again.C:
			w.reread = time.Now()
			s.changes.tell(append(s.offers.Kinds(), catalog.Tools)...)
		case <-s.relisting.again.C:
			s.changes.tell(s.relisting.due()...)
		case <-calm:
			w.loop = ""
			u.update(w.publish)
		case <-health:
			if err := w.check(ctx); err != nil {
				return err
			}
		case <-u.doubts:
			if err := w.ping(ctx); errors.Is(err, transport.ErrNotSent) {
				w.health = ""
				return err
			}
		}
	}
}

// check does a health check, unless the server has recently shown that it works. An error of check ends the session.
func (w *watcher) check(ctx context.Context) error {
	u := w.u
	var err error
	if !w.heard() {
		if err = w.ping(ctx); err == nil {
			w.checked = time.Now()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if err == nil {
		w.failures, w.proven = 0, true
		if w.health != "" {
			w.health = ""
			u.update(w.publish)
		}
		return nil
	}
	if w.s.link.Life().Cause() != nil {
		return nil // watch returns the cause for which the link ended
	}
	w.failures++
	w.health = u.spec.Secrets.Line("health check failed: "+err.Error(), 300)
	if w.failures >= u.spec.Health.Threshold && !w.working() {
		// The next session begins as healthy, unless no health check has succeeded in this session.
		if w.proven {
			w.health = ""
		}
		return errors.New("health check failed: " + err.Error())
	}
	u.update(w.publish)
	return nil
}

// mutePatience is how long a server that answers no requests is still treated as alive if it sends messages of its own.
const mutePatience = 30 * time.Minute

// heard reports whether a check can be skipped: a call succeeded or the session began within the last interval of health checks, or
// a call is open and the server has sent something (see speaks).
func (w *watcher) heard() bool {
	if w.u.succeededWithin(w.u.spec.Health.Interval) {
		return true
	}
	busy, _ := w.s.busy()
	return busy && w.speaks()
}

// speaks reports whether the server has sent anything since it last answered a check, and within the last interval of health
// checks.
func (w *watcher) speaks() bool {
	at := w.s.link.Life().LastHeard()
	return at.After(w.checked) && time.Since(at) < w.u.spec.Health.Interval
}

// working reports whether a server that does not answer checks may be busy with one request: it sends messages, or calls are
// open. A server that mcpx has started itself may be silent for as long as the longest open call may take, and one interval of
// health checks more. With other servers, silence may also mean that the network is down, so they get less time.
func (w *watcher) working() bool {
	if w.speaks() && (w.u.succeededWithin(mutePatience) || time.Since(w.checked) < mutePatience) {
		return true
	}
	busy, longest := w.s.busy()
	if !busy {
		return false
	}
	if w.s.questions.waiting() { // a user may take longer to answer than any call
		return true
	}
	if w.s.link.Traits().OwnsProcess {
		return time.Since(w.s.link.Life().LastHeard()) < longest+w.u.spec.Health.Interval
	}
	return w.failures < busyPatience*w.u.spec.Health.Threshold
}

// ping tests within Health.Timeout whether the server answers. Some legacy servers do not know ping, and send no answer or a
// strange one (see pingUnknown). So a legacy server that has never answered a ping also gets a tools/list, after half of the
// time or after the strange answer. If the server answers this tools/list first, all later tests use only tools/list.
func (w *watcher) ping(ctx context.Context) error {
	timeout := w.u.spec.Health.Timeout
	ctx, cancel := context.WithTimeout(ctx, timeout)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	type sign struct {
		err   error
		tools bool
	}
	signs := make(chan sign, 2)
	open := 0
	ask := func(tools bool) {
		open++
		asking.Go(func() { signs <- sign{w.s.ping(ctx, tools), tools} })
	}
	ask(w.unpinged)
	unsure := !w.unpinged && !w.pinged && !w.s.Modern
	half := time.NewTimer(timeout / 2)
	defer half.Stop()
	for {
		select {
		case <-half.C:
			if unsure {
				unsure = false
				ask(true)
			}
		case sign := <-signs:
			if sign.err == nil {
				w.pinged, w.unpinged = w.pinged || !sign.tools, sign.tools
				return nil
			}
			if open--; unsure && pingUnknown(sign.err) {
				unsure = false
				ask(true)
			}
			if ctx.Err() != nil {
				return errors.New("no answer within " + timeout.String())
			}
			if open == 0 {
				return sign.err
			}
		}
	}
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

// relist waits for the time coalesce, and then reads the lists that are due. The next refresh begins relistPause after the
// beginning of this one at the earliest. If a refresh fails, the old lists stay in use.
func (u *Upstream) relist(ctx context.Context, s *session) {
	if u.spec.Catalogue.Shared != nil || !delay.Sleep(ctx, coalesce) {
		return
	}
	select {
	case <-s.changes.told:
	default:
	}
	began := time.Now()
	u.relistDue(ctx, s)
	delay.Until(ctx, max(0, relistPause-time.Since(began)), s.link.Life().Done(), nil)
}

// Relist makes mcpx read the tools of the open session again, because the server may have changed them without a notification. But
// if the last such request is more recent than silentPause, Relist makes no new one. Relist returns when the last request has been
// carried out, or ctx or the session ends. It returns at once if no session is open.
func (u *Upstream) Relist(ctx context.Context) {
	if s := u.current(); s != nil && u.spec.Catalogue.Shared == nil {
		relisted(ctx, s, silentPause)
	}
}

// relisted requests that the tools are read again, unless the last such request is more recent than pause. It returns when the last
// request has been carried out, or the session or ctx ends.
func relisted(ctx context.Context, s *session, pause time.Duration) {
	select {
	case <-s.changes.again(pause):
	case <-s.link.Life().Done():
	case <-ctx.Done():
	}
}

// Again checks an upstream that may have been connected long ago. If it is unavailable, mcpx tries to connect at once; if an open
// session answers, mcpx reads the tools again. Again returns when that is done, or ctx ends. silent is why an open session does not
// answer. It is empty if the session answers, if an open call keeps the server busy, or if no session is open.
func (u *Upstream) Again(ctx context.Context) (silent string) {
	before, s := u.Status(), u.current()
	switch {
	case before.State == catalog.Unavailable:
		u.Retry()
		u.awaitStatus(ctx, func() bool {
			return u.stopped || u.status.State != before.State || !u.status.RetryAfter.Equal(before.RetryAfter)
		})
		return ""
	case s == nil:
		u.Await(ctx)
		return ""
	}
	bounded, cancel := context.WithTimeout(ctx, u.spec.Timeouts.Connect)
	defer cancel()
	err := s.ping(bounded, true)
	busy, _ := s.busy()
	switch {
	case err == nil:
		relisted(ctx, s, 0)
		return ""
	case busy || s.link.Life().Cause() != nil: // about a session that has ended, the status says more
		return ""
	case ctx.Err() != nil:
		return "no answer to tools/list yet"
	case bounded.Err() != nil:
		return "no answer to tools/list within " + u.spec.Timeouts.Connect.String()
	}
	return u.spec.reason(err)
}

// relistDue reads the lists that are due (see changes.due) and that the server offers.
func (u *Upstream) relistDue(ctx context.Context, s *session) {
	due, done := s.changes.due()
	defer done()
	if due[catalog.Tools] {
		u.relistTools(ctx, s)
	}
	u.listItems(ctx, s, due)
}

func (u *Upstream) relistTools(ctx context.Context, s *session) {
	bounded, cancel := context.WithTimeout(ctx, u.spec.Timeouts.Connect)
	tools, faults, err := s.listTools(bounded)
	cancel()
	if err != nil {
		if s.link.Life().Cause() != nil || ctx.Err() != nil { // the session, or mcpx, ends
			return
		}
		u.spec.Logger.Warn("refreshing the catalogue", "err", u.spec.Secrets.Line(err.Error(), 300))
		s.relisting.later(catalog.Tools)
		return
	}
	s.relisting.taken()
	u.update(func(st *Status) { u.adopt(st, s, tools, faults) })
}
