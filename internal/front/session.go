package front

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/upstream"
	"mcpx/internal/view"
)

// session is a legacy session in the memory of this process: its open requests, questions, streams, subscriptions and pending
// notifications. The record ([Session]) is stored separately. Over stdio, HTTP+SSE and sockets, a session begins and ends with the
// connection, so its record is not stored. On such a connection, a modern client also has a session.
type session struct {
	id         string                        // key in Options.Sessions; empty if the record is not stored
	record     atomic.Pointer[Session]       // the newest record that this process knows
	client     atomic.Pointer[caller.Client] // over stdio the client has no name before initialize
	inflight   inflight
	pending    *pending // made by attach; gets changes until endPending is called
	endPending func()
	detach     func() // detaches the client from the view
	followed   followed
	ending     sync.Once // ensures that release runs only once
	opened     bool      // this process answered the initialize of the session

	also chan string // URIs of resources that the client has subscribed to at other replicas; nil without Peers

	questions questions
	listed    atomic.Bool   // the client has listed tools
	begin     func()        // closes begun; further calls do nothing
	begun     chan struct{} // closed when the client may be asked questions

	mu      sync.Mutex
	anew    []string // PerClient servers whose session with the client may be lost; each is removed when the client is told
	streams []sender // the open streams for messages that belong to no request, the newest last
}

// place fills in what the view determines about a client: the name of the view, and the fields Transparent and Apps.
func (f *Front) place(at caller.Place) caller.Place {
	traits := f.view.Traits()
	at.View, at.Transparent, at.Apps = traits.Name, traits.Transparent, traits.Apps
	return at
}

// newSession makes a session in memory. The caller must call attach, except for a session in which only initialize is answered.
// stream is nil over streamable HTTP, headers is nil over stdio.
func (f *Front) newSession(id string, record *Session, who *caller.Principal, stream sender, headers http.Header) *session {
	s := &session{begun: make(chan struct{})}
	if stream != nil {
		s.streams = []sender{stream}
	}
	if f.options.Peers != nil {
		s.also, s.questions.replica = make(chan string, 64), f.options.Peers.Self()
	}
	s.followed.again = true
	s.begin = sync.OnceFunc(func() { close(s.begun) })
	s.record.Store(record)
	client := caller.New(f.place(caller.Place{
		ID: id, Notify: s.notify, Request: s.ask(nil), Principal: who, Headers: headers,
	}), record.Said)
	s.client.Store(&client)
	s.inflight.idle = time.Now()
	return s
}

// attach connects the session's client to the view, until the session ends.
func (f *Front) attach(s *session) {
	s.pending, s.endPending = f.pendingFor(s.client.Load())
	s.detach = f.view.Attach(s.client.Load(), view.Attachment{})
}

// listens records that the client has opened or closed a stream for messages that are not part of any request.
func (s *session) listens(stream sender, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open {
		s.streams = append(s.streams, stream)
	} else {
		s.streams = slices.DeleteFunc(s.streams, func(one sender) bool { return one == stream })
	}
}

// outside returns the newest open stream for messages that are not part of any request. It returns nil if the client has none.
func (s *session) outside() sender {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) == 0 {
		return nil
	}
	return s.streams[len(s.streams)-1]
}

// lost reports whether the client may have lost its session with a server, because this process has continued the client's session
// with mcpx from its record. It returns true only once for each server.
func (s *session) lost(server string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.anew, server)
	if at >= 0 {
		s.anew = slices.Delete(s.anew, at, at+1)
	}
	return at >= 0
}

// notify sends a notification that is not part of any request, if the client has a stream open for such notifications. It drops
// log messages below the client's level.
func (s *session) notify(method string, params json.RawMessage) {
	if method == "notifications/message" && (!s.logs() || !atLeast(params, s.minLevel())) {
		return
	}
	if out := s.outside(); out != nil {
		out.notify(method, params)
	}
}

// logs reports whether the client gets log messages: a legacy client does, also if it has set no level. The level is then for the
// server to decide (MCP 2025-11-25). A modern client, which names the level in each request, has sent no initialize, so its record has
// no version.
func (s *session) logs() bool { return s.minLevel() != "" || s.record.Load().Said.Version != "" }

// minLevel returns the lowest log level that the client has set; empty if it has set none.
func (s *session) minLevel() mcp.LoggingLevel { return s.record.Load().Level }

// atLeast reports whether the log message with these params is at least as severe as the level minimum. If the level of the message
// is unknown or minimum is empty, it returns true.
func atLeast(params json.RawMessage, minimum mcp.LoggingLevel) bool {
	at := slices.Index(upstream.LogLevels, mcp.LoggingLevel(wire.MemberText(params, "level")))
	return at < 0 || at >= slices.Index(upstream.LogLevels, minimum)
}

// isLevel reports whether the protocol defines this log level.
func isLevel(level mcp.LoggingLevel) bool { return slices.Contains(upstream.LogLevels, level) }

// ask returns a func that asks the client a question (caller.Client.Request). stream is the stream of the request that causes the
// question. If stream is nil or does not take the question, the question goes on the newest stream that belongs to no request (see
// the method outside). The func first waits until the client may be asked (see the field begun).
func (s *session) ask(stream sender) caller.Ask {
	return func(ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
		select {
		case <-s.begun:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return s.questions.ask(ctx, []sender{stream, s.outside()}, method, params, progress)
	}
}
