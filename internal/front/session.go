package front

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/upstream"
)

// session is the session of a legacy client, which opens it with initialize. Over
// stdio it exists from the start, as the process has one client.
type session struct {
	client   atomic.Pointer[upstream.Client] // before initialize it has only an ID
	level    atomic.Value                    // mcp.LoggingLevel that the client has set; unset = no log messages
	inflight inflight
	changed  chan struct{} // from changes.subscribe, after initialize
}

func newSession(id string) *session {
	s := &session{}
	s.client.Store(&upstream.Client{ID: id})
	s.inflight.idle = time.Now()
	return s
}

// sessions are the legacy sessions over HTTP. The zero value is ready.
type sessions struct {
	mu   sync.RWMutex
	byID map[string]*session
}

func (s *sessions) get(id string) *session {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byID[id]
}

// each calls f for every session. It does not hold the lock meanwhile.
func (s *sessions) each(f func(*session)) {
	s.mu.RLock()
	all := make([]*session, 0, len(s.byID))
	for _, one := range s.byID {
		all = append(all, one)
	}
	s.mu.RUnlock()
	for _, one := range all {
		f(one)
	}
}

// addSession adds an initialized session and returns its id.
func (f *Front) addSession(s *session) string {
	s.changed = f.changes.subscribe()
	id := s.client.Load().ID
	f.sessions.mu.Lock()
	defer f.sessions.mu.Unlock()
	if f.sessions.byID == nil {
		f.sessions.byID = make(map[string]*session)
	}
	f.sessions.byID[id] = s
	return id
}

// endSession ends a session and its open requests.
func (f *Front) endSession(s *session) {
	client := s.client.Load()
	f.sessions.mu.Lock()
	_, there := f.sessions.byID[client.ID]
	delete(f.sessions.byID, client.ID)
	f.sessions.mu.Unlock()
	if there {
		f.changes.unsubscribe(s.changed)
		s.inflight.end(false, errSessionEnded)
		f.view.Forget(client)
	}
}

func newSessionID() string { return "mcpx-" + rand.Text() }
