package front

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/request"
)

// Session is the record of a legacy session over HTTP. It has all the data that another process needs to continue the session. A
// stored record is never modified: each change stores a new one. The record does not have the session's streams, open requests and
// questions. They are in the memory of the process that serves them, in a [session], which the process makes from the record. If
// this process is gone, the client must open its GET stream again, and open questions get no answer.
type Session struct {
	// View is the name of the session's view. Other views treat the session as unknown.
	View string `json:"view,omitempty"`
	// Said is what the client said about itself in initialize.
	Said caller.Said `json:"said"`
	// Principal is the ID of the principal that opened the session; only this principal may use it. Empty means
	// unauthenticated. What the principal may do depends on the credential of each request.
	Principal string `json:"principal,omitempty"`
	// Level is the lowest log level that the client has set; empty if it has set none.
	Level mcp.LoggingLevel `json:"level,omitempty"`
	// Followed are the URIs of the resources that the client subscribes to. A process that continues the session from its record
	// subscribes to them when the client opens its GET stream.
	Followed []string `json:"followed,omitempty"`
	// Stream is the id of the replica that has the GET stream of the session. Home is the id of the replica that has the client's
	// sessions with PerClient servers. A field is empty if there is no such replica. The named replica may have ended.
	Stream string `json:"stream,omitempty"`
	Home   string `json:"home,omitempty"`
	// Anew means that the client must still be told that its sessions with PerClient servers are lost. They are lost when the
	// replica in Home has ended or is shutting down, and another replica becomes the Home.
	Anew bool `json:"anew,omitempty"`
	// Began is when the session was opened.
	Began time.Time `json:"began"`
}

// Limits for the records that are kept in memory about sessions: how many records, and how many bytes. The id of a session contains
// the state that the session had at its start, encrypted. So a record is kept only of a session that has changed or ended since
// then, or whose state is too large for an id.
const (
	maxRecords     = 100_000
	maxRecordBytes = 32 << 20
)

// NewSessions returns a store of session records in the memory of this process. Processes with the same secret can serve each
// other's sessions; see [state.NewSealed].
func NewSessions(secret *state.Secret) state.Sessions[Session] {
	return state.NewSealed[Session]([]*state.Secret{secret}, "session", state.NewRecords(maxRecords, maxRecordBytes))
}

func newSessionID() string { return "mcpx-" + rand.Text() }

// sessions are the legacy sessions over HTTP that this process has in memory. The zero value is ready.
type sessions struct {
	making sync.Mutex // held while a session is made in memory from its record
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

func (s *sessions) remove(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID[one.id] == one {
		delete(s.byID, one.id)
	}
}

// each calls f for every session, without holding the lock.
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

// live makes the session in memory for a record. The session stays in memory until release. The caller has counted the session with
// Admission already. opened means that the client has opened the session just now, in this process.
func (f *Front) live(id string, record *Session, who *caller.Principal, headers http.Header, opened bool) *session {
	s := f.newSession(id, record, who, nil, headers)
	s.id, s.opened = id, opened
	f.attach(s)
	f.sessions.add(s)
	// endWith comes after add, so that no Front.end is missed: an end before add has ended f.stateless, and a later end finds s
	// itself.
	s.inflight.endWith(&f.stateless)
	return s
}

// foreign reports whether a session belongs to another principal or view. Such a session is treated as unknown, so that the
// caller does not learn that it exists.
func (f *Front) foreign(record *Session, who *caller.Principal) bool {
	return record.View != f.name || record.Principal != who.Key()
}

// find returns a principal's session. If this process does not have the session in memory, find makes it from the record. The
// session does not end as idle until the caller calls inflight.free. toEnd means that the caller only wants to end the session.
// Then the result has only an id, and find works even if the client is at its limit of sessions. An error is state.ErrUnknown,
// state.ErrAway or a *request.LimitError.
func (f *Front) find(ctx context.Context, id string, who *caller.Principal, headers http.Header, toEnd bool) (*session, error) {
	s := f.sessions.get(id)
	var known *Session
	if s != nil {
		known = s.record.Load()
	}
	record, err := f.options.Sessions.Get(ctx, id)
	switch {
	case err == nil && f.foreign(record, who):
		return nil, state.ErrUnknown
	case err == nil && toEnd:
		s = &session{id: id}
		s.inflight.hold()
		return s, nil
	case err == nil && s != nil && s.inflight.hold():
		if record != known {
			s.record.CompareAndSwap(known, record) // does nothing if a newer record was stored meanwhile
		}
		return s, nil
	case err == nil:
		return f.takeUp(ctx, id, record, who, headers)
	case s != nil && errors.Is(err, state.ErrUnknown): // another process has ended the session
		f.release(s)
	}
	return nil, err
}

// takeUp returns the session in memory for a record, and makes it if there is none. If the session in memory has ended, for
// example because it was idle, takeUp first waits until release has removed it. Otherwise release would also detach the new session
// from the view.
func (f *Front) takeUp(ctx context.Context, id string, record *Session, who *caller.Principal, headers http.Header) (*session, error) {
	for {
		f.sessions.making.Lock()
		s := f.sessions.get(id)
		if s == nil {
			defer f.sessions.making.Unlock()
			return f.anew(ctx, id, record, who, headers)
		}
		f.sessions.making.Unlock()
		if s.inflight.hold() { // another request has made the session in the meantime
			return s, nil
		}
		f.release(s)
	}
}

// anew makes the session in memory for a record, because this process has only the record of the session.
func (f *Front) anew(ctx context.Context, id string, record *Session, who *caller.Principal, headers http.Header) (*session, error) {
	if over := f.options.Admission.OpenSession(who); over != nil {
		return nil, over
	}
	s := f.live(id, record, who, headers, false)
	if f.options.Homed != nil && f.options.Peers == nil { // with Peers, the field Anew of the record says that sessions were lost
		s.mu.Lock()
		s.anew = f.options.Homed()
		if f.options.PerPrincipal != nil { // other clients of the principal may still use the sessions of the principal
			own := f.options.PerPrincipal()
			s.anew = slices.DeleteFunc(slices.Clone(s.anew), func(name string) bool { return slices.Contains(own, name) })
		}
		s.mu.Unlock()
	}
	// The client may know outdated lists: it got them from an earlier process with another config, or before it was idle. So all
	// lists are announced as changed.
	for _, kind := range []catalog.Kind{catalog.Tools, catalog.Resources, catalog.Prompts} {
		s.pending.changed(kind)
	}
	s.begin() // questions need not wait: the client has completed its handshake long ago
	_, err := f.options.Sessions.Get(ctx, id)
	if err == nil && !s.inflight.hold() {
		err = state.ErrUnknown
	}
	if err != nil { // the session has ended in the meantime, so s must be released here
		f.release(s)
		return nil, err
	}
	return s, nil
}

// change changes the record of a session. The error is state.ErrUnknown, state.ErrAway or state.ErrLarge. A record that is not
// stored, as over stdio, is changed only in memory.
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

// endEnded removes from memory the sessions that another process has ended. By calling Get, it also tells the store that the
// remaining sessions are still used: a client with an open stream may send no request for days.
func (f *Front) endEnded() {
	f.sessions.each(func(s *session) {
		if _, err := f.options.Sessions.Get(context.Background(), s.id); errors.Is(err, state.ErrUnknown) {
			f.release(s)
		}
	})
}

// endSession ends a session and its open requests. If it returns an error (state.ErrAway), the session continues. After a
// success no process answers requests of the session. Only a replica that could not be told may still answer for a short time.
func (f *Front) endSession(ctx context.Context, s *session) error {
	if err := f.options.Sessions.End(ctx, s.id); err != nil {
		return err
	}
	f.release(s)
	f.Ended(s.id) // a request may have taken up the session again just before
	if f.options.Peers != nil {
		f.options.Peers.Ended(ctx, f.name, s.id)
	}
	return nil
}

// Ended removes a session that was ended in the store from the memory of this process. It does nothing if the session is not there.
func (f *Front) Ended(session string) {
	if s := f.sessions.get(session); s != nil {
		f.release(s)
	}
}

// release cancels the open requests of a session, and removes the session from memory. It returns when that is done, also if
// another goroutine does it. The record stays in the store.
func (f *Front) release(s *session) {
	s.ending.Do(func() {
		s.inflight.end(false, errSessionEnded)
		client := s.client.Load()
		if client == nil { // find returned s only to end the session
			return
		}
		s.questions.end()
		f.options.Admission.CloseSession(client.Principal)
		s.endPending()
		s.followed.close()
		s.detach()
		f.sessions.remove(s)
		if f.options.SessionEnded != nil && s.opened {
			f.options.SessionEnded(client, time.Since(s.record.Load().Began))
		}
	})
}

// refused returns the error and the HTTP status of a request whose session cannot be used, opened or changed.
func refused(err error) (status int, _ *rpcError) {
	if over, ok := errors.AsType[*request.LimitError](err); ok {
		return http.StatusTooManyRequests, tooMany(over)
	}
	if errors.Is(err, state.ErrLarge) {
		message := "what the client has said of itself and subscribed to is " + err.Error()
		return http.StatusRequestEntityTooLarge, &rpcError{code: codeRefused, message: message}
	}
	if errors.Is(err, state.ErrUnknown) {
		return http.StatusNotFound, &rpcError{code: codeRefused, message: "no such session; send initialize"}
	}
	return http.StatusServiceUnavailable, &rpcError{code: codeRefused, message: err.Error()}
}
