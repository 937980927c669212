package upstream

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"mcpx/internal/catalog"
)

// Status is what is known about an upstream at one moment. Its slices are
// never changed.
type Status struct {
	State      catalog.State
	Reason     string
	RetryAfter time.Time // when the next attempt is due; zero if none is planned
	Transport  string
	Protocol   string // negotiated revision, of the last session
	Modern     bool
	Title      string
	Version    string
	// Instructions and Tools are those of the last session that had them.
	Instructions string
	Tools        []catalog.Tool
	// Known is set once a tools/list was read.
	Known bool
	// Faults are what is wrong with single tools.
	Faults []string
	// Took is how long the last successful attempt took.
	Took time.Duration
	// Restarts counts the sessions that were lost. CrashLoop says that they are lost
	// again and again.
	Restarts  int
	CrashLoop bool
}

// Upstream is one server under supervision: a goroutine owns its session, opens
// a fresh one after a loss, and tries for ever. Safe for concurrent use.
type Upstream struct {
	spec Spec

	mu      sync.Mutex
	status  Status
	session *session
	changed chan struct{} // closed and replaced at each change of status or session
	succeed time.Time     // the last success of any call
	whole   bool          // the catalogue of status was read to its end

	stopped bool          // under mu: no call is taken any more
	open    int           // under mu: calls that were taken
	idle    chan struct{} // closed once stopped and open is 0

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
		kick:    make(chan struct{}, 1),
		doubts:  make(chan struct{}, 1),
		ended:   make(chan struct{}),
	}
	u.status = Status{State: catalog.Connecting, Transport: u.spec.Type}
	return u
}

// Start begins the supervision. It returns at once.
func (u *Upstream) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	u.cancel = cancel
	// Ends with Close, which waits for it.
	go func() {
		defer close(u.ended)
		u.supervise(ctx)
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
	close(u.changed)
	u.changed = make(chan struct{})
}

// take counts a call, unless the upstream is stopped.
func (u *Upstream) take() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stopped {
		return &UnavailableError{State: catalog.Unavailable, Reason: errStopped.Error(), Stopped: true}
	}
	u.open++
	return nil
}

func (u *Upstream) done() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open--
	if u.stopped && u.open == 0 {
		close(u.idle)
	}
}

// Close ends the session and everything it started, and waits for that: within
// that time if it is not 0, the rest is killed. Open calls fail. Without a Start
// there is no session to end.
func (u *Upstream) Close(within time.Duration) {
	u.refuse()
	if u.cancel == nil {
		return
	}
	u.spec.closeWithin.Store(int64(within))
	u.cancel()
	<-u.ended
}

// Status returns what is known now.
func (u *Upstream) Status() Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.status
}

// Retry ends a wait for the next attempt, if there is one.
func (u *Upstream) Retry() {
	select {
	case u.kick <- struct{}{}:
	default:
	}
}

// update changes the status, and the session with it, under the lock, then tells
// who waits.
func (u *Upstream) update(change func(*Status)) {
	u.mu.Lock()
	change(&u.status)
	close(u.changed)
	u.changed = make(chan struct{})
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

// acquire returns the open session. While a first attempt or a fresh session is
// under way it waits, at most until ctx ends; after a failed attempt it says so
// at once.
func (u *Upstream) acquire(ctx context.Context) (*session, error) {
	for {
		u.mu.Lock()
		s, status, changed, stopped := u.session, u.status, u.changed, u.stopped
		u.mu.Unlock()
		if stopped {
			return nil, &UnavailableError{State: catalog.Unavailable, Reason: errStopped.Error(), Stopped: true}
		}
		if s != nil {
			select {
			case <-s.link.done():
				// Lost, and the supervisor is about to see it.
				status.State, status.Reason = catalog.Connecting, u.spec.clean(s.link.cause().Error(), 300)
			default:
				return s, nil
			}
		} else if status.State != catalog.Connecting && status.State != catalog.Degraded {
			return nil, unavailable(status)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, unavailable(status)
		}
	}
}

// current returns the open session; nil if there is none, or no call is taken.
func (u *Upstream) current() *session {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stopped || u.session == nil {
		return nil
	}
	select {
	case <-u.session.link.done():
		return nil
	default:
		return u.session
	}
}

func unavailable(status Status) error {
	e := &UnavailableError{State: status.State, Reason: status.Reason}
	if !status.RetryAfter.IsZero() {
		e.RetryAfter = max(0, time.Until(status.RetryAfter))
	}
	return e
}

// Call is one tools/call.
type Call struct {
	Tool string
	// Arguments is a JSON object, sent as it is; nil = {}.
	Arguments json.RawMessage
	// Meta are further members of _meta.
	Meta []MetaMember
	// Repeatable says that the tool is declared idempotent or read-only: after a
	// loss the call is sent once more.
	Repeatable bool
	// Wait bounds the wait for a session; 0 = no wait beyond the call's time.
	Wait time.Duration
	// Timeout and Idle replace the Spec's CallTimeout and IdleTimeout; 0 = the
	// Spec's.
	Timeout, Idle time.Duration
	// OnProgress gets the params of each progress notification, from the reader:
	// it must not block. May be nil.
	OnProgress func(params json.RawMessage)
	// Client is who calls; may be nil.
	Client *Client
	// OnLog gets the params of log messages, from the reader, as OnProgress. Those
	// that a server does not send on the stream of a call come only if no other
	// client has lately used the session. May be nil.
	OnLog func(params json.RawMessage)
	// LogLevel is what the server is asked for where OnLog is not nil; less severe
	// messages may come all the same. Empty or unknown: debug.
	LogLevel string
}

// MetaMember is one member of _meta.
type MetaMember struct {
	Name  string
	Value any
}
