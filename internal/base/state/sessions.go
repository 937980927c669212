package state

import (
	"context"
	"crypto/rand"
	"sync"
	"time"
)

// sessions implement [Sessions] in memory.
type sessions[S any] struct {
	limit int
	mu    sync.RWMutex
	byID  map[string]session[S]
}

type session[S any] struct {
	record *S
	until  time.Time // zero means until End is called
}

func (s *session[S]) over(now time.Time) bool { return !s.until.IsZero() && !now.Before(s.until) }

// NewSessions returns Sessions in memory. limit is how many may exist at the same time; 0 means no bound. Use 0 only if the
// caller itself limits the sessions and ends each of them.
func NewSessions[S any](limit int) Sessions[S] {
	return &sessions[S]{limit: limit, byID: make(map[string]session[S])}
}

// Open keeps a record under a random id.
func (s *sessions[S]) Open(_ context.Context, record *S, until time.Time) (id string, err error) {
	id = "mcpx-" + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit > 0 {
		s.makeRoom()
	}
	s.byID[id] = session[S]{record, until}
	return id, nil
}

// makeRoom removes expired sessions and, if there are still too many for another, the session that expires first. The
// caller holds the lock.
func (s *sessions[S]) makeRoom() {
	now, first := time.Now(), ""
	for id, one := range s.byID {
		if one.over(now) {
			delete(s.byID, id)
			continue
		}
		before := s.byID[first].until
		if first == "" || !one.until.IsZero() && (before.IsZero() || one.until.Before(before)) {
			first = id
		}
	}
	if len(s.byID) >= s.limit {
		delete(s.byID, first)
	}
}

// Get returns the record of a session that has not ended.
func (s *sessions[S]) Get(_ context.Context, id string) (*S, error) {
	s.mu.RLock()
	one, ok := s.byID[id]
	s.mu.RUnlock()
	if !ok || !one.until.IsZero() && one.over(time.Now()) {
		return nil, ErrUnknown
	}
	return one.record, nil
}

// Change replaces the record of a session by a changed copy.
func (s *sessions[S]) Change(_ context.Context, id string, change func(*S)) (*S, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.byID[id]
	if !ok || one.over(time.Now()) {
		return nil, ErrUnknown
	}
	next := *one.record
	change(&next)
	s.byID[id] = session[S]{&next, one.until}
	return &next, nil
}

// End removes a session, even if the session is only Released, since no other process knows the session.
func (s *sessions[S]) End(_ context.Context, id string, _ Ending) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
	return nil
}
