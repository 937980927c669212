// Package front is the MCP server that clients see. It has both protocol eras over
// stdio and HTTP, their sessions, and one table of methods. Its view decides which
// tools the clients see and may call.
package front

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/request"
	"mcpx/internal/view"
)

// Options are the settings of a front. The zero value is fine.
type Options struct {
	// Version is the version of mcpx in the answers.
	Version string
	// SessionIdle is how long a legacy session over HTTP may go unused before it
	// ends; 0 = 30 min.
	SessionIdle time.Duration
	// MaxMessage bounds the body of a request over HTTP, in bytes; 0 = 64 MiB.
	MaxMessage int64
	// Known reports whether a principal may still come over HTTP; nil = everybody may.
	Known func(*caller.Principal) bool
	// Admission bounds what clients open and send; nil = nothing does.
	Admission Admission
	// Trace, where not nil, gets every message from and to a client; peer names the
	// connection. It must not block.
	Trace func(peer string, received bool, message []byte)
	// Sessions are of the legacy clients of all fronts, Once has the states of calls that were answered, and Secret is what the
	// states of upstreams are tagged with. nil = of this front alone, in memory.
	Sessions state.Sessions[Session]
	Once     state.Once
	Secret   *state.Secret
	// Journal has the observers of the clients' requests. May be nil.
	Journal *request.Journal
	// SessionEnded is called when a session over HTTP has ended in this process (see [Front.Sessions]). May be nil.
	SessionEnded func(client *caller.Client, lasted time.Duration)
	// Logger may be nil (discard).
	Logger *slog.Logger

	// writeWithin bounds one write to a client over HTTP; 0 = 2 min, which is
	// 64 MiB at half a megabyte a second.
	writeWithin time.Duration
}

// Admission bounds what the clients of a principal, nil for anybody, open and send. Safe for concurrent use.
type Admission interface {
	// OpenSession counts a session, or refuses it. What was counted is taken back by CloseSession.
	OpenSession(p *caller.Principal) *request.LimitError
	CloseSession(p *caller.Principal)
	// ReadBody counts bytes of a body that the client is about to send. ok is false if there is no room for them; wait is how
	// long the reader should wait. When the body is no longer read, BodyRead takes back the sum.
	ReadBody(p *caller.Principal, bytes int) (wait time.Duration, ok bool)
	BodyRead(p *caller.Principal, bytes int)
}

// unbounded is the admission of a front without one.
type unbounded struct{}

func (unbounded) OpenSession(*caller.Principal) *request.LimitError             { return nil }
func (unbounded) CloseSession(*caller.Principal)                                {}
func (unbounded) ReadBody(*caller.Principal, int) (wait time.Duration, ok bool) { return 0, true }
func (unbounded) BodyRead(*caller.Principal, int)                               {}

// Front answers the clients of one view. Close ends its goroutine.
type Front struct {
	view      view.View
	name      string // of the view
	options   Options
	identity  json.RawMessage // the _meta that names mcpx
	log       *slog.Logger
	changes   changes
	streams   sseStreams
	sessions  sessions       // legacy, over HTTP: what lives of them in this process
	stateless inflight       // requests of the modern era over HTTP
	tags      *caller.Tags   // of the states of upstreams
	suspended suspendedCalls // calls of the modern era that wait for answers of their clients
	requests  atomic.Int64   // modern ones over HTTP so far

	detach   func() // from the view, which announces its changes to those that see everything
	stop     chan struct{}
	stopOnce sync.Once
	loops    sync.WaitGroup
}

// New makes a front of the view v.
func New(v view.View, options Options) *Front {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Admission == nil {
		options.Admission = unbounded{}
	}
	options.SessionIdle = cmp.Or(options.SessionIdle, 30*time.Minute)
	options.MaxMessage = cmp.Or(options.MaxMessage, 64<<20)
	options.writeWithin = cmp.Or(options.writeWithin, 2*time.Minute)
	if options.Sessions == nil {
		options.Sessions = NewSessions()
	}
	if options.Once == nil {
		options.Once = NewOnce()
	}
	name := v.Traits().Name
	f := &Front{
		view: v, name: name, options: options, log: options.Logger, identity: selfDescription(options.Version),
		tags: tagsOf(options.Secret, name), stop: make(chan struct{}),
	}
	all := caller.New(caller.Place{ID: "all clients", View: name}, caller.Said{})
	f.suspended.process, f.suspended.identity, f.suspended.journal = rand.Text()[:8], f.identity, options.Journal
	f.suspended.once = options.Once
	f.detach = v.Attach(&all, view.Attachment{Changed: f.changes.announce, Unknown: f.changes.pass})
	f.loops.Go(f.sweep) // ends with Close
	return f
}

// Protocols are the revisions that clients may speak, newest first.
func Protocols() []string { return mcp.ValidProtocolVersions }

// The reasons why a request ends before its answer.
var (
	errStopping     = errors.New("mcpx is shutting down; the call may have been executed")
	errClosed       = errors.New("the config of mcpx does not have this view any more; the call may have been executed")
	errInputEnded   = errors.New("the client closed its side; the call may have been executed")
	errSessionEnded = errors.New("the session was ended; the call may have been executed")
	errExpired      = errors.New("the token that opened the stream has expired; the call may have been executed")
	errUnknown      = errors.New("who opened the stream may not connect any more; the call may have been executed")
)

// EndStreams ends the requests over HTTP that wait for events rather than a result,
// and refuses new ones. A server that shuts down does not wait for them.
func (f *Front) EndStreams() { f.end(true, errStopping) }

// EndCalls ends all open requests over HTTP, each with an error, and refuses new
// ones. A server that shuts down calls it after its grace: closing the connections
// instead would leave the clients without an answer.
func (f *Front) EndCalls() { f.end(false, errStopping) }

func (f *Front) end(lastingOnly bool, why error) {
	f.stateless.end(lastingOnly, why)
	f.sessions.each(func(s *session) { s.inflight.end(lastingOnly, why) })
	if !lastingOnly {
		f.suspended.end(why)
	}
}

// Close ends the open requests over HTTP, where EndCalls has not ended them, lets go of the sessions, and ends the goroutine that New
// started.
func (f *Front) Close() { f.close(state.Released) }

// Remove is Close for a view that a reload took away: its sessions end.
func (f *Front) Remove() { f.close(state.Closed) }

func (f *Front) close(why state.Ending) {
	f.end(false, errClosed)
	f.sessions.each(func(s *session) { f.leave(s, why) })
	f.stopOnce.Do(func() {
		f.detach()
		close(f.stop)
	})
	f.loops.Wait()
	f.suspended.all.Wait()
}

// EndUnknown ends the streams and the sessions over HTTP of principals that Options.Known
// does not know any more: nobody can come back to them. Whoever changes that calls it; a
// request that came before and begins later ends with the next sweep.
func (f *Front) EndUnknown() {
	known := f.options.Known
	if known == nil {
		return
	}
	f.stateless.endOf(known, errUnknown)
	f.sessions.each(func(s *session) {
		if !known(s.client.Load().Principal) {
			f.leave(s, state.Closed)
		}
	})
}

// sweep ends idle sessions, and unknown ones, until Close.
func (f *Front) sweep() {
	ticker := time.NewTicker(max(f.options.SessionIdle/30, time.Second))
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			f.endIdle(now.Add(-f.options.SessionIdle))
			f.EndUnknown()
		case <-f.stop:
			return
		}
	}
}

// endIdle ends the sessions whose last use was before the given time.
func (f *Front) endIdle(before time.Time) {
	f.sessions.each(func(s *session) {
		if s.inflight.endIdle(before, errSessionEnded) {
			f.leave(s, state.Released)
		}
	})
}

// leave ends a session in this process, whether or not it can be ended for others.
func (f *Front) leave(s *session, why state.Ending) {
	if err := f.endSession(context.Background(), s, why); err != nil {
		f.log.Warn("a session could not be ended for other processes", "error", err)
		f.release(s)
	}
}
