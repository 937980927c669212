// Package front is the MCP server that clients see. It has both protocol eras over
// stdio and HTTP, their sessions, and one table of methods; what the clients are
// shown and may call is the business of its view.
package front

import (
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/view"
)

// Options are what a front needs beside its view. The zero value is fine.
type Options struct {
	// Version is that of mcpx, as clients see it.
	Version string
	// SessionIdle ends a legacy session over HTTP that was not used for so long;
	// 0 = 30 min.
	SessionIdle time.Duration
	// MaxMessage bounds the body of a request over HTTP, in bytes; 0 = 64 MiB.
	MaxMessage int64
	// Logger may be nil (discard).
	Logger *slog.Logger

	// writeWithin bounds one write to a client over HTTP; 0 = 2 min: 64 MiB at
	// half a megabyte a second.
	writeWithin time.Duration
}

// Front answers the clients of one view. Close ends what it started.
type Front struct {
	view      view.View
	options   Options
	identity  json.RawMessage // what names mcpx in a _meta
	log       *slog.Logger
	changes   changes
	sessions  sessions     // legacy, over HTTP
	stateless inflight     // requests of the modern era over HTTP
	requests  atomic.Int64 // counts them

	stop     chan struct{}
	stopOnce sync.Once
	loops    sync.WaitGroup
}

// New makes a front that shows v.
func New(v view.View, options Options) *Front {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	options.SessionIdle = cmp.Or(options.SessionIdle, 30*time.Minute)
	options.MaxMessage = cmp.Or(options.MaxMessage, 64<<20)
	options.writeWithin = cmp.Or(options.writeWithin, 2*time.Minute)
	f := &Front{view: v, options: options, log: options.Logger, identity: identity(options.Version), stop: make(chan struct{})}
	v.OnChange(f.changes.announce)
	f.loops.Go(f.sweep) // ends with Close
	return f
}

// Protocols are the revisions that clients may speak, newest first.
func Protocols() []string { return mcp.ValidProtocolVersions }

// Why requests are ended before their answer.
var (
	errStopping     = errors.New("mcpx is shutting down; the call may have been executed")
	errInputEnded   = errors.New("the client closed its side; the call may have been executed")
	errSessionEnded = errors.New("the session was ended; the call may have been executed")
)

// EndStreams ends the requests over HTTP that wait for events and not for a
// result, and those to come: the server does not wait for them at its end.
func (f *Front) EndStreams() { f.end(true) }

// EndCalls ends all open requests over HTTP, each in an error, and those to come.
// It is for the end of the server, after it has waited for them: the end of their
// connections would leave them without an answer.
func (f *Front) EndCalls() { f.end(false) }

func (f *Front) end(lastingOnly bool) {
	f.stateless.end(lastingOnly, errStopping)
	f.sessions.each(func(s *session) { s.inflight.end(lastingOnly, errStopping) })
}

// Close ends the open requests over HTTP, and what New started.
func (f *Front) Close() {
	f.EndCalls()
	f.stopOnce.Do(func() { close(f.stop) })
	f.loops.Wait()
}

// sweep ends the sessions that nobody uses; it ends with Close.
func (f *Front) sweep() {
	ticker := time.NewTicker(max(f.options.SessionIdle/30, time.Second))
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			f.endIdle(now.Add(-f.options.SessionIdle))
		case <-f.stop:
			return
		}
	}
}

// endIdle ends the sessions that were last used before that.
func (f *Front) endIdle(before time.Time) {
	f.sessions.each(func(s *session) {
		if s.inflight.idleSince(before) {
			f.endSession(s)
		}
	})
}
