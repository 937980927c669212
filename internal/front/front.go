// Package front is the MCP server that clients connect to. It speaks both protocol eras over stdio and HTTP, keeps the
// clients' sessions, and has one table of methods. Its view decides which tools a client sees and may call.
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

// Options are the settings of a front. All may be zero.
type Options struct {
	// Version is the version of mcpx, for the handshake.
	Version string
	// SessionIdle is how long a legacy session over HTTP may go unused before it
	// ends; 0 = 30 min.
	SessionIdle time.Duration
	// MaxMessage bounds the body of a request over HTTP, in bytes; 0 = 64 MiB.
	MaxMessage int64
	// Known reports whether a principal may still connect over HTTP; nil = every principal may.
	Known func(*caller.Principal) bool
	// Admission bounds the clients' sessions and bodies; nil = no bounds.
	Admission Admission
	// Trace, if not nil, gets every message from and to a client; peer names the connection. It must not block.
	Trace func(peer string, received bool, message []byte)
	// Sessions keeps the records of legacy sessions, for all fronts. Once makes the state of a suspended call usable only
	// once. Secret is the key for the tags on upstreams' states. Nil = in the memory of this front.
	Sessions state.Sessions[Session]
	Once     state.Once
	Secret   *state.Secret
	// Journal passes the events of requests to the observers. May be nil.
	Journal *request.Journal
	// SessionEnded is called when a session over HTTP has ended in this process (see [Front.Sessions]). May be nil.
	SessionEnded func(client *caller.Client, lasted time.Duration)
	// Logger may be nil (discard).
	Logger *slog.Logger

	// writeWithin bounds one write to a client over HTTP; 0 = 2 min, which is
	// 64 MiB at half a megabyte a second.
	writeWithin time.Duration
}

// Admission bounds what the clients of one principal (nil = unauthenticated clients) open and send. Safe for concurrent use.
type Admission interface {
	// OpenSession counts a session, or refuses it. CloseSession takes it back.
	OpenSession(p *caller.Principal) *request.LimitError
	CloseSession(p *caller.Principal)
	// ReadBody counts bytes of a body before they are read. ok is false if there is no room for them; wait is how long the
	// reader should pause. BodyRead takes the sum back once the body is read.
	ReadBody(p *caller.Principal, bytes int) (wait time.Duration, ok bool)
	BodyRead(p *caller.Principal, bytes int)
}

// unbounded is the default Admission.
type unbounded struct{}

func (unbounded) OpenSession(*caller.Principal) *request.LimitError             { return nil }
func (unbounded) CloseSession(*caller.Principal)                                {}
func (unbounded) ReadBody(*caller.Principal, int) (wait time.Duration, ok bool) { return 0, true }
func (unbounded) BodyRead(*caller.Principal, int)                               {}

// Front serves the clients of one view. Close ends its goroutine.
type Front struct {
	view      view.View
	name      string // of the view
	options   Options
	identity  json.RawMessage // the _meta that names mcpx
	log       *slog.Logger
	changes   changes
	streams   sseStreams
	sessions  sessions       // legacy, over HTTP: those with a live part in this process
	stateless inflight       // modern requests over HTTP
	tags      *caller.Tags   // for the states of upstreams
	suspended suspendedCalls // modern calls that wait for their client's answers
	requests  atomic.Int64   // number of modern requests over HTTP so far

	detach   func() // ends the view's announcements to changes
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

// The reasons for which mcpx ends a request before its answer.
var (
	errStopping     = errors.New("mcpx is shutting down; the call may have been executed")
	errClosed       = errors.New("this view was removed from the config of mcpx; the call may have been executed")
	errInputEnded   = errors.New("the client closed its side; the call may have been executed")
	errSessionEnded = errors.New("the session was ended; the call may have been executed")
	errExpired      = errors.New("the token that opened the stream has expired; the call may have been executed")
	errUnknown      = errors.New("the principal that opened the stream may not connect any more; the call may have been executed")
)

// EndStreams ends the long-lived streams over HTTP and refuses new ones. A shutdown calls it at once, so as not to wait for
// them.
func (f *Front) EndStreams() { f.end(true, errStopping) }

// EndCalls ends all open requests over HTTP, each with an error, and refuses new ones. A shutdown calls it after its grace
// period: closing the connections instead would leave clients without an answer.
func (f *Front) EndCalls() { f.end(false, errStopping) }

func (f *Front) end(lastingOnly bool, why error) {
	f.stateless.end(lastingOnly, why)
	f.sessions.each(func(s *session) { s.inflight.end(lastingOnly, why) })
	if !lastingOnly {
		f.suspended.end(why)
	}
}

// Close ends the open requests over HTTP, releases the sessions (other processes may go on with them), and ends the goroutine
// of New.
func (f *Front) Close() { f.close(state.Released) }

// Remove is Close for a view that a reload removed: its sessions end everywhere.
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

// EndUnknown ends the streams and sessions over HTTP of principals that Options.Known rejects. It must be called after each
// change of the principals; a request that was let in just before is ended by the next sweep.
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

// sweep ends idle sessions and those of unknown principals, until Close.
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

// endIdle ends the sessions that were last used before the given time.
func (f *Front) endIdle(before time.Time) {
	f.sessions.each(func(s *session) {
		if s.inflight.endIdle(before, errSessionEnded) {
			f.leave(s, state.Released)
		}
	})
}

// leave ends a session here, even if that cannot be stored for other processes.
func (f *Front) leave(s *session, why state.Ending) {
	if err := f.endSession(context.Background(), s, why); err != nil {
		f.log.Warn("a session could not be ended for other processes", "error", err)
		f.release(s)
	}
}
