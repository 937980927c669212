package upstream

import (
	"context"
	"sync"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/transport"
)

// Upstream supervises one server: a goroutine owns its session and opens a fresh one after each loss. Safe for
// concurrent use.
type Upstream struct {
	spec   Spec
	dialer *transport.Dialer // used only by the supervising goroutine, except for CloseWithin

	mu      sync.Mutex
	status  Status
	session *session
	changed chan struct{} // closed and replaced at each change of the status, the session or stopped
	succeed time.Time     // when a call last succeeded, or a session was opened
	whole   bool          // the tools in status are a complete list that a session has read
	warned  string        // for the method levelOf, which only the supervising goroutine calls

	stopped bool          // under mu: new calls are refused
	open    int           // under mu: how many runs of Call and Follow have not returned
	idle    chan struct{} // closed once stopped is set and open is 0

	asked bool          // under mu: a request has needed the upstream
	used  time.Time     // under mu: when a call last ended (only with StopIdle), a session was opened, or Ask was called
	hurry chan struct{} // has a buffer of one: a value means that a caller waits, so an install moves to the front of the queue
	line  line          // the place in the queue of installs, for the first attempt

	kick   chan struct{}      // has a buffer of one: a value means that the next attempt is to begin now
	doubts chan struct{}      // has a buffer of one: a value means that a call could not reach the server
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
	u.status = Status{State: catalog.Connecting, Installing: u.spec.installs > 0 && !u.spec.StartedBefore}
	if u.spec.Catalogue.Tools != nil {
		u.status.Known, u.status.Tools = true, u.spec.Catalogue.Tools
	}
	if u.spec.Lazy && u.spec.StartedBefore {
		u.status.State = catalog.Idle
	}
	return u
}

// Start begins the supervision and returns at once.
func (u *Upstream) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	u.cancel = cancel
	if u.spec.installs > 0 && u.Status().State != catalog.Idle {
		u.line = line{u.spec.Concurrency.Installs.Join(""), true}
	}
	// The goroutine ends with Close, which waits for it.
	go func() {
		defer close(u.ended)
		u.supervise(ctx)
		u.giveUpTurn(ctx)
	}()
}

// Stop refuses new calls and calls that wait for a session, with a [request.UnavailableError]. It returns when the open
// calls have ended, or when ctx ends. Close must still be called.
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

// wake wakes everything that waits for a change. The caller holds u.mu.
func (u *Upstream) wake() {
	close(u.changed)
	u.changed = make(chan struct{})
}

// Close ends the session and everything it started, and waits for that. Open calls fail. If limit is not 0, processes that still
// run after limit are killed. If limit is 0, they are killed after the usual time. Without a Start there is nothing to end.
func (u *Upstream) Close(limit time.Duration) {
	u.refuse()
	if u.cancel == nil {
		return
	}
	u.dialer.CloseWithin(limit)
	u.cancel()
	<-u.ended
}

// Status returns the current status.
func (u *Upstream) Status() Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.status
}

// Open returns how many calls are open or wait for a session or a concurrency limit. A subscription ([Upstream.Follow])
// counts as one.
func (u *Upstream) Open() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.open
}

// Retry ends the pause before the next attempt to connect. If an attempt is running and fails, the next one follows without
// a pause.
func (u *Upstream) Retry() { signal(u.kick) }

// update calls the func change under u.mu; change may change the status and the session. Then it wakes everything that waits for a
// change, and calls OnChange.
func (u *Upstream) update(change func(*Status)) {
	u.mu.Lock()
	change(&u.status)
	u.wake()
	u.mu.Unlock()
	u.spec.OnChange()
}

// Await returns when the state is not connecting, the upstream is stopped, or ctx ends. A failed attempt makes the state
// unavailable; but for a server that dials in ([transport.Options.Arrived]) it stays connecting until a session is open.
func (u *Upstream) Await(ctx context.Context) {
	u.awaitStatus(ctx, func() bool { return u.stopped || u.status.State != catalog.Connecting })
}

// AwaitLists returns when mcpx has tried to read the lists besides the tools, or the upstream is idle, unavailable or stopped,
// or ctx ends.
func (u *Upstream) AwaitLists(ctx context.Context) {
	u.awaitStatus(ctx, func() bool {
		state := u.status.State
		return u.stopped || u.status.ListTried || state == catalog.Idle || state == catalog.Unavailable || state == catalog.Disabled
	})
}

// awaitStatus returns when the func condition returns true, or ctx ends. It calls condition under u.mu.
func (u *Upstream) awaitStatus(ctx context.Context, condition func() bool) {
	for {
		u.mu.Lock()
		over, changed := condition(), u.changed
		u.mu.Unlock()
		if over {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
