package front

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/caller"
	"mcpx/internal/view"
)

// session is the session of a legacy client, which opens it with initialize. Over
// stdio it exists from the start, as the process has one client.
type session struct {
	client   atomic.Pointer[caller.Client] // before initialize it has only an ID
	level    atomic.Value                  // mcp.LoggingLevel that the client has set; unset = no log messages
	inflight inflight
	news     *news // from newsFor, after initialize, until endNews
	endNews  func()
	detach   func()    // from the view, by addSession
	opened   time.Time // by addSession
	followed followed

	questions questions
	begin     func()        // closes begun, once
	begun     chan struct{} // closed: the client may be asked something

	mu     sync.Mutex
	stream outlet // what sends what belongs to no request; nil if nothing does
}

// place is a place at the view of the front.
func (f *Front) place(at caller.Place) caller.Place {
	traits := f.view.Traits()
	at.View, at.Alone, at.Apps = traits.Name, traits.Alone, traits.Apps
	return at
}

// newSession makes a session, which the request over HTTP with these headers opens; over stdio there is none.
func (f *Front) newSession(id string, stream outlet, p *caller.Principal, headers http.Header) *session {
	s := &session{begun: make(chan struct{}), stream: stream}
	s.begin = sync.OnceFunc(func() { close(s.begun) })
	client := caller.New(f.place(caller.Place{
		ID: id, Notify: s.notify, Request: s.ask(nil), Principal: p, Headers: headers,
	}), caller.Said{})
	s.client.Store(&client)
	s.inflight.idle = time.Now()
	return s
}

// listens notes that the client has opened, or closed, a stream for what belongs to no
// request.
func (s *session) listens(on outlet, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open {
		s.stream = on
	} else if s.stream == on {
		s.stream = nil
	}
}

// outside is what sends what belongs to no request, nil if nothing does.
func (s *session) outside() outlet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream
}

// notify sends a notification that belongs to no request, if the client listens
// somewhere. Of log messages it sends those that the client wants.
func (s *session) notify(method string, params json.RawMessage) {
	out := s.outside()
	if level := s.least(); method == "notifications/message" && (level == "" || !atLeast(params, level)) {
		return
	}
	if out != nil {
		out.notify(method, params)
	}
}

// least is the least severe level of the log messages that the client wants; empty =
// none.
func (s *session) least() mcp.LoggingLevel {
	level, _ := s.level.Load().(mcp.LoggingLevel)
	return level
}

// ask asks the client (upstream.Client.Request), on the stream of a request or, if out
// is nil or has ended, where it listens. A client that has just initialized may not be asked yet.
func (s *session) ask(out outlet) caller.Ask {
	return func(ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
		select {
		case <-s.begun:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return s.questions.ask(ctx, []outlet{out, s.outside()}, method, params, progress)
	}
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
	s.news, s.endNews = f.newsFor(s.client.Load())
	s.detach = f.view.Attach(s.client.Load(), view.Attachment{})
	s.opened = time.Now()
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
		f.options.Admission.CloseSession(client.Principal)
		s.endNews()
		s.inflight.end(false, errSessionEnded)
		s.followed.close()
		s.detach()
		if f.options.SessionEnded != nil {
			f.options.SessionEnded(client, time.Since(s.opened))
		}
	}
}

func newSessionID() string { return "mcpx-" + rand.Text() }
