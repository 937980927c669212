package upstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"sync"
	"time"
)

// listener is an open call: where progress and log messages of the server go
// while it is under way.
type listener struct {
	progress, log func(params json.RawMessage) // nil where nobody listens
	timeout       time.Duration                // of the call

	mu     sync.Mutex
	closed bool
}

func (h *listener) tell(f func(json.RawMessage), params json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed && f != nil {
		f(bytes.ToValidUTF8(bytes.Clone(params), []byte("\ufffd")))
	}
}

// listenFor registers an open request. Once unlisten returns, none of its functions is
// called or still running.
func (s *session) listenFor(id int64, r *Request) {
	h := &listener{progress: r.OnProgress, log: r.OnLog, timeout: cmp.Or(max(r.Timeout, 0), s.spec.CallTimeout)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[id] = h
	s.sole.begin(r.Client.peer())
}

// busy reports whether calls are under way, and the longest of their timeouts.
func (s *session) busy() (busy bool, longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.listeners {
		longest = max(longest, h.timeout)
	}
	return len(s.listeners) > 0, longest
}

// unlisten takes an open request off the list, once. abandoned says that the server may
// still work on it.
func (s *session) unlisten(id int64, abandoned bool) {
	s.mu.Lock()
	h := s.listeners[id]
	delete(s.listeners, id)
	if h != nil {
		s.sole.end(abandoned)
	}
	s.mu.Unlock()
	if h != nil {
		h.mu.Lock()
		h.closed = true
		h.mu.Unlock()
	}
}

// progressed passes progress on to the call whose token it has.
func (s *session) progressed(params json.RawMessage) {
	var p struct {
		Token json.RawMessage `json:"progressToken"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	id, ok := ownID(p.Token)
	if !ok {
		return
	}
	s.mu.Lock()
	h := s.listeners[id]
	s.mu.Unlock()
	if h != nil {
		h.tell(h.progress, params)
	}
}

// lateLogs is how long after the last call a server may still log what belongs to
// it.
const lateLogs = 2 * time.Minute

// sole tells whether a message that names no call can only be meant for one client. The
// first client to call on a quiet session has it for itself until another one calls. A
// session is quiet again when nobody has called for [lateLogs].
type sole struct {
	client string
	shared bool // another client has called since
	open   int
	ended  time.Time // of the last call
}

// begin notes a call of client.
func (s *sole) begin(client string) {
	if s.open == 0 && time.Since(s.ended) >= lateLogs {
		s.client, s.shared = client, false
	}
	s.shared = s.shared || client != s.client
	s.open++
}

// end notes the end of a call. One that was abandoned may be worked on, and logged
// of, for as long as the server likes: the session is never quiet again.
func (s *sole) end(abandoned bool) {
	s.ended = time.Now()
	if !abandoned {
		s.open--
	}
}

// shared reports whether what the server says without naming a call may be meant for
// one of several clients.
func (s *session) shared() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sole.shared
}

// logged passes a log message on to the call on whose stream it came. A message that
// came elsewhere does not name its call, which may even be over: it goes to the oldest
// open call of the session's sole client. Where there is no sole client it is dropped,
// as no client may read another's.
func (s *session) logged(params json.RawMessage, of int64) {
	if !json.Valid(params) {
		return
	}
	s.mu.Lock()
	h := s.listeners[of]
	if of <= 0 && !s.sole.shared {
		h = s.oldest()
	}
	s.mu.Unlock()
	if h != nil {
		h.tell(h.log, params)
	}
}

// oldest is the open call that began first, nil if there is none. The caller holds
// the lock.
func (s *session) oldest() *listener {
	first := int64(math.MaxInt64)
	for id := range s.listeners {
		first = min(first, id)
	}
	return s.listeners[first]
}
