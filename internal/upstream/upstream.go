package upstream

import (
	"context"
	"sync"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// Upstream is one server under supervision: a goroutine owns its session, opens
// a fresh one after a loss, and tries for ever. Safe for concurrent use.
type Upstream struct {
	spec   Spec
	dialer *transport.Dialer // of the supervising goroutine

	mu      sync.Mutex
	status  Status
	session *session
	changed chan struct{} // closed and replaced at each change of status or session
	succeed time.Time     // the last success of any call
	whole   bool          // the catalogue of status was read to its end
	warned  string        // the failure that was logged last; of the supervising goroutine

	stopped bool          // under mu: no call is taken any more
	open    int           // under mu: calls that were taken
	idle    chan struct{} // closed once stopped and open is 0

	asked bool          // under mu: somebody needed the upstream
	used  time.Time     // under mu: when a call ended, or somebody asked, last
	hurry chan struct{} // holds one: somebody waits for the first answer
	line  line          // of those that install; of the first attempt

	kick   chan struct{}      // holds one: try again now
	doubts chan struct{}      // holds one: a call has not reached the server
	cancel context.CancelFunc // nil before Start
	ended  chan struct{}
}

// New makes an upstream; [Upstream.Start] connects it.
func New(spec Spec) *Upstream {
	u := &Upstream{
		spec:    spec.withDefaults(),
		changed: make(chan struct{}),
		idle:    make(chan struct{}),
		hurry:   make(chan struct{}, 1),
		kick:    make(chan struct{}, 1),
		doubts:  make(chan struct{}, 1),
		ended:   make(chan struct{}),
	}
	u.dialer = transport.NewDialer(u.spec.Options)
	u.status = Status{State: catalog.Connecting, Transport: u.spec.Type, Installing: u.spec.installs != nil && !u.spec.Seen}
	if u.spec.Catalogue.Tools != nil {
		u.status.Known, u.status.Tools = true, u.spec.Catalogue.Tools
	}
	if u.spec.Lazy && u.spec.Seen {
		u.status.State = catalog.Idle
	}
	return u
}

// Start begins the supervision. It returns at once.
func (u *Upstream) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	u.cancel = cancel
	if u.spec.installs != nil && u.Status().State != catalog.Idle {
		u.line = line{u.spec.Concurrency.Installs.Join(), true}
	}
	// Ends with Close, which waits for it.
	go func() {
		defer close(u.ended)
		u.supervise(ctx)
		u.giveUpTurn(ctx)
	}()
}

// Stop takes no further calls: they, and those that wait for a session, end
// with an [UnavailableError] that says so. It returns when the open calls have
// ended, or with ctx. Close is still to be called.
func (u *Upstream) Stop(ctx context.Context) {
	u.refuse()
	select {
	case <-u.idle:
	case <-ctx.Done():
	}
}

func (u *Upstream) refuse() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stopped {
		return
	}
	u.stopped = true
	if u.open == 0 {
		close(u.idle)
	}
	u.wake()
}

// wake ends all waits for a change. The caller holds the lock.
func (u *Upstream) wake() {
	close(u.changed)
	u.changed = make(chan struct{})
}

// Close ends the session and everything it started, and waits for that: within
// that time if it is not 0, the rest is killed. Open calls fail. Without a Start
// there is no session to end.
func (u *Upstream) Close(within time.Duration) {
	u.refuse()
	if u.cancel == nil {
		return
	}
	u.dialer.CloseWithin(within)
	u.cancel()
	<-u.ended
}

// Status returns what is known now.
func (u *Upstream) Status() Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.status
}

// Open is how many calls are under way, or wait for a session.
func (u *Upstream) Open() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.open
}

// Retry ends a wait for the next attempt, if there is one.
func (u *Upstream) Retry() { signal(u.kick) }

// update changes the status, and the session with it, under the lock, then ends
// all waits for a change.
func (u *Upstream) update(change func(*Status)) {
	u.mu.Lock()
	change(&u.status)
	u.wake()
	u.mu.Unlock()
	u.spec.OnChange()
}

// Await returns when the first attempt has ended, either way, or with ctx.
func (u *Upstream) Await(ctx context.Context) {
	for {
		u.mu.Lock()
		state, changed, stopped := u.status.State, u.changed, u.stopped
		u.mu.Unlock()
		if state != catalog.Connecting || stopped {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// AwaitLists returns when the lists beside the tools were read once, or cannot be read
// now, or with ctx.
func (u *Upstream) AwaitLists(ctx context.Context) {
	for {
		u.mu.Lock()
		status, changed, stopped := u.status, u.changed, u.stopped
		u.mu.Unlock()
		under := status.State == catalog.Connecting || status.State == catalog.Ready || status.State == catalog.Degraded
		if status.ListTried || !under || stopped {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func unavailable(status Status) error {
	e := &request.UnavailableError{State: status.State, Reason: status.Reason}
	if !status.RetryAfter.IsZero() {
		e.RetryAfter = max(0, time.Until(status.RetryAfter))
	}
	return e
}
