package transport

import (
	"sync/atomic"
	"time"
)

// Lifecycle records when the server last sent a message, and how the link ended. Safe for concurrent use.
type Lifecycle struct {
	began time.Time
	heard atomic.Int64 // when the server last sent a message, in nanoseconds since began; 0 if it sent none
	ended chan struct{}
	why   atomic.Pointer[error] // set before ended is closed
	onEnd func(err error)
}

// newLifecycle begins a lifecycle. The first call of Fail calls onEnd.
func newLifecycle(onEnd func(err error)) *Lifecycle {
	return &Lifecycle{began: time.Now(), ended: make(chan struct{}), onEnd: onEnd}
}

func (l *Lifecycle) beat() { l.heard.Store(int64(time.Since(l.began))) }

// LastHeard returns when the server last sent a message or, if it sent none, when the link was made.
func (l *Lifecycle) LastHeard() time.Time { return l.began.Add(time.Duration(l.heard.Load())) }

// Fail ends the link with err as the cause. Only the first call has an effect.
func (l *Lifecycle) Fail(err error) {
	if l.why.CompareAndSwap(nil, &err) {
		close(l.ended) // before onEnd, as a caller that gets the error may ask for a fresh session at once
		l.onEnd(err)
	}
}

// Done returns a channel that is closed when the link has ended.
func (l *Lifecycle) Done() <-chan struct{} { return l.ended }

// Cause returns why the link has ended, or nil if it has not.
func (l *Lifecycle) Cause() error {
	if err := l.why.Load(); err != nil {
		return *err
	}
	return nil
}
