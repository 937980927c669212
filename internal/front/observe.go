package front

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/caller"
)

// Observer hears of the requests of clients and of the ends of their sessions. It must be fast, as a client's next
// request may wait for it, and safe for concurrent use.
type Observer interface {
	// Relaying is called before a request goes on to a server, one of any method but
	// tools/call. Its error, which the client reads, refuses the request.
	Relaying(*Operation) error
	// Answered is called after each request, mostly when its answer is written.
	Answered(*Operation)
	// SessionEnded is called when a session over HTTP has ended (see [Front.Sessions]).
	SessionEnded(client *caller.Client, lasted time.Duration)
}

// Operation is a request of a client.
type Operation struct {
	// Method is as the client wrote it; Known means that it is one of the protocol's.
	Method string
	Known  bool
	Client *caller.Client
	// Relayed means that a server has to answer it, and that Relaying was called.
	Relayed bool
	// Number is for the observer.
	Number uint64
	// Code is that of the JSON-RPC error, 0 for a result. Failed means that this is one
	// with isError; a call that is parked may say so later than anybody looks.
	Code   int
	Failed atomic.Bool
	Began  time.Time
	// Duration is 0 until the answer.
	Duration time.Duration
}

// answer answers a request, and has the observer called.
func (f *Front) answer(ctx context.Context, r *incoming) response {
	o := f.options.Observer
	if o == nil {
		return f.dispatch(ctx, r)
	}
	r.operation = &Operation{Method: r.Method, Known: r.known(), Client: r.client, Began: time.Now()}
	answer := f.dispatch(ctx, r)
	r.operation.Code, r.operation.Duration = answer.code, time.Since(r.operation.Began)
	if r.afterwards != nil {
		r.afterwards(func() { o.Answered(r.operation) })
	} else {
		o.Answered(r.operation)
	}
	return answer
}

// traced hands a message to Options.Trace.
func (f *Front) traced(peer string, received bool, message []byte) {
	if f.options.Trace != nil {
		f.options.Trace(peer, received, message)
	}
}

// relaying asks the observer whether a request may go on to a server.
func (f *Front) relaying(r *incoming) *rpcError {
	if r.operation == nil {
		return nil
	}
	r.operation.Relayed = true
	if err := f.options.Observer.Relaying(r.operation); err != nil {
		return &rpcError{code: mcp.INTERNAL_ERROR, message: err.Error()}
	}
	return nil
}

// Sessions is the number of open sessions, which clients of the legacy era have over HTTP.
func (f *Front) Sessions() int {
	f.sessions.mu.RLock()
	defer f.sessions.mu.RUnlock()
	return len(f.sessions.byID)
}
