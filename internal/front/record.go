package front

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/request"
)

// Session is the record of a legacy session over HTTP. It is data, and any process can go on with the session from it. It is never
// written to.
//
// The rest of a session is its live part ([session]). A process that has none makes a new one: the client opens its GET stream again and
// has to subscribe again, and open questions to it have no answer.
type Session struct {
	// View is the name of the view that the client has connected to: it is unknown at others.
	View string `json:"view,omitempty"`
	// Said is what the client has said of itself in initialize.
	Said caller.Said `json:"said"`
	// Principal is the ID of who has opened the session, and alone may use it; empty = anybody. What a principal may do, the
	// credential of each request says.
	Principal string `json:"principal,omitempty"`
	// Level is the least severe level of the log messages that the client wants; empty = none.
	Level mcp.LoggingLevel `json:"level,omitempty"`
	// Began is when it was opened.
	Began time.Time `json:"began"`
}

// NewSessions are the sessions of one process. [Admission] bounds them.
func NewSessions() state.Sessions[Session] { return state.NewSessions[Session](0) }

func newSessionID() string { return "mcpx-" + rand.Text() }

// sessions are the live parts of the legacy sessions over HTTP. The zero value is ready.
type sessions struct {
	making sync.Mutex // held to make a live part for a record
	mu     sync.RWMutex
	byID   map[string]*session
}

func (s *sessions) get(id string) *session {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byID[id]
}

func (s *sessions) add(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = make(map[string]*session)
	}
	s.byID[one.id] = one
}

// remove reports whether the session was there: one caller ends it.
func (s *sessions) remove(one *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID[one.id] != one {
		return false
	}
	delete(s.byID, one.id)
	return true
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

// open keeps the record of a session that was initialized, and makes its live part, which Admission has counted already.
func (f *Front) open(ctx context.Context, record *Session, who *caller.Principal, headers http.Header) (*session, error) {
	id, err := f.options.Sessions.Open(ctx, record, time.Time{})
	if err != nil {
		return nil, err
	}
	return f.live(id, record, who, headers), nil
}

// live makes the live part of a session, until release.
func (f *Front) live(id string, record *Session, who *caller.Principal, headers http.Header) *session {
	s := f.newSession(id, record, who, nil, headers)
	s.id = id
	f.attach(s)
	f.sessions.add(s)
	return s
}

// find returns the session of a principal. If this process has no live part of it, find makes one for the request with these headers.
// The error is state.ErrUnknown, state.ErrAway or a *request.LimitError.
func (f *Front) find(ctx context.Context, id string, who *caller.Principal, headers http.Header) (*session, error) {
	s := f.sessions.get(id)
	var known *Session
	if s != nil {
		known = s.record.Load()
	}
	record, err := f.options.Sessions.Get(ctx, id)
	switch {
	case err == nil && (record.View != f.name || record.Principal != who.Key()):
		return nil, state.ErrUnknown // another principal's session is as unknown as none
	case err == nil && s == nil:
		return f.takeUp(ctx, id, record, who, headers)
	case err == nil:
		if record != known {
			s.record.CompareAndSwap(known, record) // else a newer one was stored meanwhile
		}
		return s, nil
	case s != nil && errors.Is(err, state.ErrUnknown): // another process has ended it
		f.release(s)
	}
	return nil, err
}

// takeUp makes the live part of a session of which this process has only the record.
func (f *Front) takeUp(ctx context.Context, id string, record *Session, who *caller.Principal, headers http.Header) (*session, error) {
	f.sessions.making.Lock()
	defer f.sessions.making.Unlock()
	if s := f.sessions.get(id); s != nil { // of another request
		return s, nil
	}
	if over := f.options.Admission.OpenSession(who); over != nil {
		return nil, over
	}
	s := f.live(id, record, who, headers)
	s.begin()                                                  // the client has initialized it long ago
	if _, err := f.options.Sessions.Get(ctx, id); err != nil { // it has ended meanwhile, and nothing else would end s
		f.release(s)
		return nil, err
	}
	return s, nil
}

// change changes the record of a session. The error is state.ErrUnknown or state.ErrAway.
func (f *Front) change(ctx context.Context, s *session, change func(*Session)) error {
	if s.id == "" {
		next := *s.record.Load()
		change(&next)
		s.record.Store(&next)
		return nil
	}
	next, err := f.options.Sessions.Change(ctx, s.id, change)
	if err == nil {
		s.record.Store(next)
	}
	return err
}

// endSession ends a session and its open requests. With an error, state.ErrAway, the session goes on.
func (f *Front) endSession(ctx context.Context, s *session, why state.Ending) error {
	if err := f.options.Sessions.End(ctx, s.id, why); err != nil {
		return err
	}
	f.release(s)
	return nil
}

// release ends the live part of a session, with its open requests.
func (f *Front) release(s *session) {
	if !f.sessions.remove(s) {
		return
	}
	client := s.client.Load()
	f.options.Admission.CloseSession(client.Principal)
	s.endPending()
	s.inflight.end(false, errSessionEnded)
	s.followed.close()
	s.detach()
	if f.options.SessionEnded != nil {
		f.options.SessionEnded(client, time.Since(s.record.Load().Began))
	}
}

// refused is the error of a request whose session cannot be used, and its HTTP status.
func refused(err error) (status int, _ *rpcError) {
	if over, ok := errors.AsType[*request.LimitError](err); ok {
		return http.StatusTooManyRequests, tooMany(over)
	}
	if errors.Is(err, state.ErrUnknown) {
		return http.StatusNotFound, &rpcError{code: codeRefused, message: "no such session; send initialize"}
	}
	return http.StatusServiceUnavailable, &rpcError{code: codeRefused, message: err.Error()}
}
