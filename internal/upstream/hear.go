package upstream

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"
)

// hearer is an open call: where progress and log messages of the server go
// while it is under way.
type hearer struct {
	progress, log func(params json.RawMessage) // nil where nobody listens
	client        string
	timeout       time.Duration // of the call

	mu     sync.Mutex
	closed bool
}

func (h *hearer) take(f func(json.RawMessage), params json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed && f != nil {
		f(bytes.ToValidUTF8(bytes.Clone(params), []byte("\ufffd")))
	}
}

// hear registers a call for its time; the func it returns ends that: nothing is
// called any more, nor still running, when it returns.
func (s *session) hear(id int64, c Call) func() {
	s.mu.Lock()
	s.hearers[id] = &hearer{progress: c.OnProgress, log: c.OnLog, client: c.Client.peer(), timeout: s.spec.timeout(c)}
	s.mu.Unlock()
	return func() { s.unhear(id) }
}

// busy reports whether calls are under way, and the longest of their timeouts.
func (s *session) busy() (busy bool, longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hearers {
		longest = max(longest, h.timeout)
	}
	return len(s.hearers) > 0, longest
}

func (s *session) unhear(id int64) {
	s.mu.Lock()
	h := s.hearers[id]
	delete(s.hearers, id)
	if h != nil {
		s.users.ended(h.client)
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
	h := s.hearers[id]
	s.mu.Unlock()
	if h != nil {
		h.take(h.progress, params)
	}
}

// lateLogs is how long after a call a server may still log what belongs to it.
const lateLogs = 2 * time.Minute

// users are the clients whose calls have ended: the last one, and when the last
// call of any other had.
type users struct {
	last  string
	at    time.Time
	other time.Time
	// gaveUp says that a call of the client leaver was given up, several that one
	// of another was too: the server may work on it, and log, for as long as it
	// likes.
	gaveUp, several bool
	leaver          string
}

// left notes that a client has given up a call.
func (u *users) left(client string) {
	u.several = u.several || u.gaveUp && u.leaver != client
	u.gaveUp, u.leaver = true, client
}

func (u *users) ended(client string) {
	if client != u.last {
		u.last, u.other = client, u.at
	}
	u.at = time.Now()
}

// late reports whether a server may still log what belongs to another client.
func (u *users) late(client string) bool { return u.lateAt(client, time.Now()) }

// lateAt is late for another moment.
func (u *users) lateAt(client string, at time.Time) bool {
	if u.several || u.gaveUp && u.leaver != client {
		return true
	}
	ended := u.at
	if client == u.last {
		ended = u.other
	}
	return at.Sub(ended) < lateLogs
}

// alone reports whether all that a server has said since then can only be meant for
// that client.
func (s *session) alone(client string, since time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hearers {
		if h.client != client {
			return false
		}
	}
	return !s.users.lateAt(client, since)
}

// logged passes a log message on to the call on whose stream it came. One that
// came elsewhere does not say which call it belongs to, which may be over: it goes
// to the oldest open call if no other client has a call, had one lately or gave one
// up, and to nobody else, as nobody may read what belongs to another.
func (s *session) logged(params json.RawMessage, of int64) {
	if !json.Valid(params) {
		return
	}
	s.mu.Lock()
	h := s.hearers[of]
	if of <= 0 {
		h = s.oldest()
	}
	s.mu.Unlock()
	if h != nil {
		h.take(h.log, params)
	}
}

// oldest is the open call that began first, nil if there is none, or if another
// client can be meant. The caller holds the lock.
func (s *session) oldest() *hearer {
	var first int64
	for id, h := range s.hearers {
		if first != 0 && s.hearers[first].client != h.client {
			return nil
		}
		if first == 0 || id < first {
			first = id
		}
	}
	h := s.hearers[first]
	if h == nil || s.users.late(h.client) {
		return nil
	}
	return h
}
