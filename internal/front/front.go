// Package front is the MCP server that clients connect to, over stdio and HTTP. It speaks both eras of the protocol: in the
// legacy era a client opens a session with initialize, in the modern era each request stands alone. The package keeps the
// clients' sessions, and has one table of methods. A front serves one view; the view decides which tools a client sees and may
// call.
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

// Options are the settings of a front. Every field may have its zero value.
type Options struct {
	// Name and Version are what mcpx, as a server, calls itself in the handshake; an empty Name means mcpx.
	Name, Version string
	// SessionIdle is how long a legacy session over HTTP may be unused before this process frees the session's memory; 0 means 30
	// minutes. Sessions decides whether the client can use the session again after that.
	SessionIdle time.Duration
	// MaxMessage is the largest body of a request over HTTP, in bytes; 0 means 64 MiB.
	MaxMessage int64
	// Known reports whether a principal may still connect over HTTP; nil means that every principal may.
	Known func(*caller.Principal) bool
	// Admission limits the clients' sessions, messages and bodies; nil means no limits.
	Admission Admission
	// Pending bounds the notifications that clients have not read yet; several fronts may share it. nil means NewPending(0).
	Pending *Pending
	// Trace, if not nil, gets the messages from clients (received is true) and those that this process sends to clients. peer
	// names the connection, or only its kind. Trace must not block.
	Trace func(peer string, received bool, message []byte)
	// Sessions stores the records of legacy sessions; several fronts may share it. Once ensures that no requestState resumes a
	// suspended call twice. (A suspended call waits for answers of its client.) The first of Secrets signs the requestState of
	// upstream servers; a requestState signed with any of Secrets is accepted. If Sessions, Once or Secrets is nil, the front makes
	// its own in memory.
	Sessions state.Sessions[Session]
	Once     state.Once
	Secrets  []*state.Secret
	// Peers are the other processes that serve the same clients; nil if there are none. Homed returns the names of the view's
	// PerClient servers: each client or principal has a session of its own with such a server. Of these names, PerPrincipal returns
	// those of the servers that have one session for all clients of a principal. A nil func means that there are no such servers.
	Peers               Peers
	Homed, PerPrincipal func() []string
	// Journal passes the events of requests to the observers. It may be nil.
	Journal *request.Journal
	// SessionEnded is called when the process that opened a session over HTTP removes the session from its memory: because the
	// session was ended or is idle, or because the front ends. If the session is continued after that, SessionEnded is not called
	// again. It may be nil.
	SessionEnded func(client *caller.Client, lasted time.Duration)
	// Logger may be nil: then nothing is logged.
	Logger *slog.Logger

	// writeWithin limits the time for one write to a client over HTTP: a write of largeWrite bytes or more has all of this time,
	// a smaller one has at least half of it. 0 means 2 minutes.
	writeWithin time.Duration
}

// Admission limits what the clients of one principal open and send. A nil principal means the unauthenticated
// clients. Implementations are safe for concurrent use.
type Admission interface {
	// OpenSession counts a new session, stream of HTTP+SSE or subscription (subscriptions/listen), or refuses it with an error.
	// CloseSession undoes the count.
	OpenSession(p *caller.Principal) *request.LimitError
	CloseSession(p *caller.Principal)
	// Request counts one message. It is called only for messages that did not come in an HTTP request of their own, such as the
	// second message of a batch. If the error is not nil, the message is refused; otherwise the caller must delay the message by
	// wait.
	Request(p *caller.Principal) (wait time.Duration, over *request.LimitError)
	// ReadBody counts bytes of a body before they are read. ok is false if they would exceed the limit; wait is how long the reader
	// should pause. When the body has been read, or reading has failed, BodyRead must be called with the number of all bytes that
	// were counted for the body.
	ReadBody(p *caller.Principal, bytes int) (wait time.Duration, ok bool)
	BodyRead(p *caller.Principal, bytes int)
	// WriteAnswer counts the bytes of an answer before they are written. It is called for large answers, and for every answer to a
	// client that reads its answers from one stream. ok is false if the principal's clients have too many unread answers already.
	// If ok is true, AnswerWritten must be called once the answer is written.
	WriteAnswer(p *caller.Principal, bytes int) (ok bool)
	AnswerWritten(p *caller.Principal, bytes int)
}

// unbounded is the default Admission: it has no limits.
type unbounded struct{}

func (unbounded) OpenSession(*caller.Principal) *request.LimitError              { return nil }
func (unbounded) CloseSession(*caller.Principal)                                 {}
func (unbounded) Request(*caller.Principal) (time.Duration, *request.LimitError) { return 0, nil }
func (unbounded) ReadBody(*caller.Principal, int) (wait time.Duration, ok bool)  { return 0, true }
func (unbounded) BodyRead(*caller.Principal, int)                                {}
func (unbounded) WriteAnswer(*caller.Principal, int) (ok bool)                   { return true }
func (unbounded) AnswerWritten(*caller.Principal, int)                           {}

// Front serves the clients of one view. Close or Remove ends its goroutine.
type Front struct {
	view       view.View
	name       string // the name of the view
	options    Options
	identity   json.RawMessage // a _meta object that names mcpx as the server
	log        *slog.Logger
	changes    changes
	sseStreams sseStreams
	sessions   sessions       // legacy sessions over HTTP that this process has in memory
	stateless  inflight       // modern and forwarded requests over HTTP, and the streams of HTTP+SSE and sockets
	tags       *caller.Tags   // sign the requestState of upstream servers
	suspended  suspendedCalls // modern calls during which the client can be asked questions
	requests   atomic.Int64   // numbers the modern requests over HTTP
	listings   listings       // when clients without a session last listed tools over HTTP
	following  following      // the subscriptions to resources

	detach   func() // stops the view from reporting changes to the field changes
	stop     chan struct{}
	stopOnce sync.Once
	loops    sync.WaitGroup
}

// New makes a front that serves the view v.
func New(v view.View, options Options) *Front {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Admission == nil {
		options.Admission = unbounded{}
	}
	if options.Pending == nil {
		options.Pending = NewPending(0)
	}
	options.Name = cmp.Or(options.Name, "mcpx")
	options.SessionIdle = cmp.Or(options.SessionIdle, 30*time.Minute)
	options.MaxMessage = cmp.Or(options.MaxMessage, 64<<20)
	options.writeWithin = cmp.Or(options.writeWithin, 2*time.Minute)
	if options.Sessions == nil {
		options.Sessions = NewSessions(state.NewSecret())
	}
	if options.Once == nil {
		options.Once = NewOnce()
	}
	name := v.Traits().Name
	f := &Front{
		view: v, name: name, options: options, log: options.Logger, identity: selfDescription(options.Name, options.Version),
		tags: tagsOf(options.Secrets, name), stop: make(chan struct{}),
	}
	all := caller.New(caller.Place{ID: "all clients", View: name}, caller.Said{})
	f.suspended.process, f.suspended.identity, f.suspended.journal = rand.Text()[:8], f.identity, options.Journal
	if options.Peers != nil {
		f.suspended.process = options.Peers.Self() + "-" + f.suspended.process
	}
	f.suspended.once = options.Once
	f.detach = v.Attach(&all, view.Attachment{Changed: f.changes.announce, Unknown: f.changes.pass})
	f.loops.Go(f.sweep) // the goroutine ends with Close
	return f
}

// Protocols returns the protocol revisions that clients may use, newest first.
func Protocols() []string { return mcp.ValidProtocolVersions }

// Reasons why mcpx may end a request before it is answered. If the client then gets an error, the error says the reason.
var (
	errStopping     = errors.New("mcpx is shutting down; the call may have been executed")
	errClosed       = errors.New("this view was removed from the config of mcpx; the call may have been executed")
	errInputEnded   = errors.New("the client closed its side; the call may have been executed")
	errSessionEnded = errors.New("the session was ended; the call may have been executed")
	errExpired      = errors.New("the token that opened the stream has expired; the call may have been executed")
	errUnknown      = errors.New("the principal that opened the stream may not connect any more; the call may have been executed")
)

// EndStreams ends the long-lived streams over HTTP, and new ones as soon as they begin. A stream of HTTP+SSE or a socket may
// first finish its open requests. A shutdown first calls EndStreams, because such streams would not end on their own.
func (f *Front) EndStreams() { f.end(true, errStopping) }

// EndCalls cancels all open requests over HTTP, and new ones except initialize. A cancelled call gets an error as its answer. A
// shutdown calls EndCalls after its grace period, if it has one. If the shutdown closed the connections instead, clients would
// get no answer.
func (f *Front) EndCalls() { f.end(false, errStopping) }

func (f *Front) end(lastingOnly bool, why error) {
	// f.stateless must be ended before the sessions: if a session is added while sessions.each runs, live sees that f.stateless has
	// ended, and ends the new session too.
	f.stateless.end(lastingOnly, why)
	f.sessions.each(func(s *session) { s.inflight.end(lastingOnly, why) })
	if !lastingOnly {
		f.suspended.end(why)
	}
}

// Close ends the open requests over HTTP, removes the sessions from memory (other processes may continue them), and ends the
// goroutine that New started.
func (f *Front) Close() { f.close(f.release) }

// Remove ends the front of a view that a reload has removed from the config. It does what Close does, but no process may
// continue the sessions.
func (f *Front) Remove() { f.close(f.leave) }

func (f *Front) close(leave func(*session)) {
	f.end(false, errClosed)
	f.sessions.each(leave)
	f.stopOnce.Do(func() {
		f.detach()
		close(f.stop)
	})
	f.loops.Wait()
	f.suspended.all.Wait()
}

// EndUnknown ends the streams, suspended calls and sessions over HTTP of principals that Options.Known rejects. It must be called
// after each change of the principals. If such a principal opens a stream or a session during the change, the next sweep ends it.
func (f *Front) EndUnknown() {
	known := f.options.Known
	if known == nil {
		return
	}
	f.stateless.endOf(known, errUnknown)
	f.suspended.endOf(known, errUnknown)
	f.sessions.each(func(s *session) {
		if !known(s.client.Load().Principal) {
			f.leave(s)
		}
	})
}

// sweep regularly ends idle sessions, streams and sessions of principals that Options.Known rejects, and sessions that another
// process has ended. It returns on Close or Remove.
func (f *Front) sweep() {
	ticker := time.NewTicker(max(f.options.SessionIdle/30, time.Second))
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			f.endIdle(now.Add(-f.options.SessionIdle))
			f.EndUnknown()
			f.endEnded()
		case <-f.stop:
			return
		}
	}
}

// endIdle removes from memory the sessions that have not been used since the given time.
func (f *Front) endIdle(before time.Time) {
	f.sessions.each(func(s *session) {
		if s.inflight.endIdle(before, errSessionEnded) {
			f.release(s)
		}
	})
}

// leave ends a session. If the store fails, other processes do not learn of the end, but the session ends here nevertheless.
func (f *Front) leave(s *session) {
	if err := f.endSession(context.Background(), s); err != nil {
		f.log.Warn("a session could not be ended for other processes", "error", err)
		f.release(s)
	}
}
