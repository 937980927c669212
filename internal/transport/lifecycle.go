package transport

import (
	"sync/atomic"
	"time"
)

// Lifecycle is when a server was last heard, and the end of its link. Safe for concurrent use.
type Lifecycle struct {
	began time.Time
	heard atomic.Int64 // nanoseconds since began
	ended chan struct{}
	why   atomic.Pointer[error] // set before ended is closed
	onEnd func(err error)
}

// newLifecycle begins a life; onEnd is called once, by who ends it.
func newLifecycle(onEnd func(err error)) *Lifecycle {
	return &Lifecycle{began: time.Now(), ended: make(chan struct{}), onEnd: onEnd}
}

func (l *Lifecycle) beat() { l.heard.Store(int64(time.Since(l.began))) }

// LastHeard is when the server said something, whatever it was; if nothing, when the link was made.
func (l *Lifecycle) LastHeard() time.Time { return l.began.Add(time.Duration(l.heard.Load())) }

// Fail makes the link of no more use, for that reason, if it was of any.
func (l *Lifecycle) Fail(err error) {
	if l.why.CompareAndSwap(nil, &err) {
		close(l.ended) // first: a caller that gets the error may look at once for a fresh session
		l.onEnd(err)
	}
}

// Done is closed when the link is of no more use.
func (l *Lifecycle) Done() <-chan struct{} { return l.ended }

// Cause is why the link is of no more use; nil before.
func (l *Lifecycle) Cause() error {
	if err := l.why.Load(); err != nil {
		return *err
	}
	return nil
}
