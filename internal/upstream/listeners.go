package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// listener is an open call: where progress and log messages of the server go
// while it is under way.
type listener struct {
	client        *caller.Client
	progress, log func(params json.RawMessage) // nil where nobody listens
	timeout       time.Duration                // of the call
	clock, idle   *clock                       // nil where there is none

	mu     sync.Mutex
	closed bool
	asking map[*context.CancelCauseFunc]struct{} // the questions that the end of the call cancels
}

// tell calls f, which must be one of the call's, while the call is open.
func (h *listener) tell(f func(json.RawMessage), params json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed && f != nil {
		f(params)
	}
}

// openCalls are the calls of a session, under its lock.
type openCalls struct {
	listeners map[int64]*listener // by request id
	sole      exclusivity
	abandoned []abandonedCall
}

// listenFor registers an open request. Once unlisten returns, none of its functions is
// called or still running.
func (s *session) listenFor(id int64, r *call) {
	h := &listener{
		client: r.Client, progress: r.Sink.Progress, log: r.Sink.Log, clock: r.clock, idle: r.idle,
		timeout: cmp.Or(max(r.Timeout, 0), s.spec.Timeouts.Call),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls.listeners[id] = h
	s.calls.sole.begin(r.Client.Program())
}

// busy reports whether calls are under way, and the longest of their timeouts.
func (s *session) busy() (busy bool, longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.calls.listeners {
		longest = max(longest, h.timeout)
	}
	return len(s.calls.listeners) > 0, longest
}

// unlisten takes an open request off the list, once. abandoned says that the server may
// still work on it.
func (s *session) unlisten(id int64, abandoned bool) {
	s.mu.Lock()
	h := s.calls.listeners[id]
	delete(s.calls.listeners, id)
	if h != nil {
		s.calls.sole.end(abandoned)
		if abandoned {
			s.abandon(h)
		}
	}
	s.mu.Unlock()
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for cancel := range h.asking {
		(*cancel)(errCallOver)
	}
}

// errCallOver ends the questions of a call.
var errCallOver = errors.New("the call is over")

// during makes the clocks of calls stand still until the func that it returns is called,
// and lets the end of the last of them cancel a question that one of them asks.
func during(calls []*listener, cancel context.CancelCauseFunc) (over func()) {
	var open atomic.Int64
	open.Store(int64(len(calls)))
	overs := make([]func(), len(calls))
	for i, h := range calls {
		overs[i] = h.asks(func(cause error) {
			if open.Add(-1) == 0 {
				cancel(cause)
			}
		})
	}
	return func() {
		for _, over := range overs {
			over()
		}
	}
}

// asks is during for one call.
func (h *listener) asks(cancel context.CancelCauseFunc) (over func()) {
	clocks := slices.DeleteFunc([]*clock{h.clock, h.idle}, func(c *clock) bool { return c == nil })
	for _, c := range clocks {
		c.hold()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asking == nil {
		h.asking = make(map[*context.CancelCauseFunc]struct{})
	}
	if h.asking[&cancel] = struct{}{}; h.closed {
		cancel(errCallOver)
	}
	return func() {
		h.mu.Lock()
		delete(h.asking, &cancel)
		h.mu.Unlock()
		for _, c := range clocks {
			c.release()
		}
	}
}

// progressed passes progress on to the call whose token it has.
func (s *session) progressed(params json.RawMessage) {
	id, ok := wire.IntID(wire.Member(params, "progressToken"))
	if !ok {
		return
	}
	s.mu.Lock()
	h := s.calls.listeners[id]
	s.mu.Unlock()
	if h != nil {
		h.tell(h.progress, validText(params))
	}
}

// lateLogs is how long after the last call a server may still log what belongs to
// it.
const lateLogs = 2 * time.Minute

// exclusivity tells whether a line that is no message can only be meant for one client. The
// first client to call on a quiet session has it for itself until another one calls. A
// session is quiet again when nobody has called for [lateLogs].
type exclusivity struct {
	client string
	shared bool // another client has called since
	open   int
	ended  time.Time // of the last call
}

// begin notes a call of client.
func (s *exclusivity) begin(client string) {
	if s.open == 0 && time.Since(s.ended) >= lateLogs {
		s.client, s.shared = client, false
	}
	s.shared = s.shared || client != s.client
	s.open++
}

// end notes the end of a call. One that was abandoned may be worked on, and logged
// of, for as long as the server likes: the session is never quiet again.
func (s *exclusivity) end(abandoned bool) {
	if abandoned {
		return
	}
	if s.open--; s.open == 0 {
		s.ended = time.Now()
	}
}

// shared reports whether a line of the server that is no message may be meant for one
// of several clients.
func (s *session) shared() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls.sole.shared
}

// abandonedCall is one that its caller gave up: the server may still work on it.
type abandonedCall struct {
	client *caller.Client
	at     time.Time
}

// maxAbandoned bounds those that a session remembers.
const maxAbandoned = 1000

// abandon notes an open call as one that was given up. The caller holds the lock.
func (s *session) abandon(h *listener) {
	now := time.Now()
	s.calls.abandoned = slices.DeleteFunc(s.calls.abandoned, func(a abandonedCall) bool { return now.Sub(a.at) > lateLogs })
	if len(s.calls.abandoned) < maxAbandoned {
		s.calls.abandoned = append(s.calls.abandoned, abandonedCall{h.client, now})
	}
}

// callsOf are the open calls that a message of the server may belong to, oldest first:
// that on whose stream it came. On a stream for all they are all open ones, if all that the
// server may be working on is one client's; who tells clients apart. Else there are none.
// The caller holds the lock.
func (s *session) callsOf(of int64, who func(*caller.Client) string) (calls []*listener) {
	if of > 0 {
		if h := s.calls.listeners[of]; h != nil {
			calls = append(calls, h)
		}
		return calls
	}
	for _, id := range slices.Sorted(maps.Keys(s.calls.listeners)) {
		h := s.calls.listeners[id]
		if len(calls) > 0 && who(h.client) != who(calls[0].client) {
			return nil
		}
		calls = append(calls, h)
	}
	for _, a := range s.calls.abandoned {
		if len(calls) > 0 && who(a.client) != who(calls[0].client) && time.Since(a.at) <= lateLogs {
			return nil
		}
	}
	return calls
}

// logged passes a log message on to the call that it belongs to or, on a session that
// belongs to one client, to that client. Where nothing says whose it is, it is dropped,
// as no client may read another's.
func (s *session) logged(params json.RawMessage, of int64) {
	if !json.Valid(params) {
		return
	}
	s.mu.Lock()
	calls := s.callsOf(of, (*caller.Client).Program)
	s.mu.Unlock()
	owner, params := s.spec.owner(), s.spec.signed(params)
	switch {
	case len(calls) > 0 && calls[0].log != nil:
		calls[0].tell(calls[0].log, params)
	case owner != nil && owner.Notify != nil:
		owner.Notify("notifications/message", params)
	}
}

// validText is a copy of JSON of the server that may be handed on; nil stays nil.
func validText(params json.RawMessage) json.RawMessage {
	if len(params) == 0 {
		return nil
	}
	return bytes.ToValidUTF8(bytes.Clone(params), []byte("\ufffd"))
}
