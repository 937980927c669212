package front

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/caller"
	"mcpx/internal/view"
)

// session is the live part of a legacy session in this process: its open requests, questions and streams, the resources that it
// follows, and the notifications that it has yet to get. Its [Session] is the record. Over stdio the session exists from the start, as
// the process has one client, and the record is not kept behind a door.
type session struct {
	id         string                        // in Options.Sessions; empty over stdio
	record     atomic.Pointer[Session]       // the newest that this process knows
	client     atomic.Pointer[caller.Client] // over stdio it has only an ID before initialize
	inflight   inflight
	pending    *pending // from pendingFor, after initialize, until endPending
	endPending func()
	detach     func() // from the view
	followed   followed

	questions questions
	begin     func()        // closes begun, once
	begun     chan struct{} // closed: the client may be asked something

	mu     sync.Mutex
	stream sender // what sends what belongs to no request; nil if nothing does
}

// place is a place at the view of the front.
func (f *Front) place(at caller.Place) caller.Place {
	traits := f.view.Traits()
	at.View, at.Alone, at.Apps = traits.Name, traits.Alone, traits.Apps
	return at
}

// newSession makes the live part of a session. stream is nil over HTTP, and headers are nil over stdio. The caller attaches it.
func (f *Front) newSession(id string, record *Session, who *caller.Principal, stream sender, headers http.Header) *session {
	s := &session{begun: make(chan struct{}), stream: stream}
	s.begin = sync.OnceFunc(func() { close(s.begun) })
	s.record.Store(record)
	client := caller.New(f.place(caller.Place{
		ID: id, Notify: s.notify, Request: s.ask(nil), Principal: who, Headers: headers,
	}), record.Said)
	s.client.Store(&client)
	s.inflight.idle = time.Now()
	return s
}

// attach makes the client of the session one of the view, until the session ends.
func (f *Front) attach(s *session) {
	s.pending, s.endPending = f.pendingFor(s.client.Load())
	s.detach = f.view.Attach(s.client.Load(), view.Attachment{})
}

// listens notes that the client has opened, or closed, a stream for what belongs to no
// request.
func (s *session) listens(on sender, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open {
		s.stream = on
	} else if s.stream == on {
		s.stream = nil
	}
}

// outside is what sends what belongs to no request, nil if nothing does.
func (s *session) outside() sender {
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
func (s *session) least() mcp.LoggingLevel { return s.record.Load().Level }

// ask asks the client (upstream.Client.Request), on the stream of a request or, if out
// is nil or has ended, where it listens. A client that has just initialized may not be asked yet.
func (s *session) ask(out sender) caller.Ask {
	return func(ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
		select {
		case <-s.begun:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return s.questions.ask(ctx, []sender{out, s.outside()}, method, params, progress)
	}
}
