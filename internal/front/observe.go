package front

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/lru"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/request"
)

// answer answers a request and sets r.event to its event. The transport ends the event once the answer is
// written.
func (f *Front) answer(ctx context.Context, r *incoming) response {
	r.event = f.options.Journal.Begin(r.Method, r.client)
	r.event.Request, r.event.KnownMethod = true, r.known()
	answer := f.dispatch(ctx, r)
	answeredWith(r.event, answer.code, len(answer.body))
	r.event.Stop()
	return answer
}

// listings records when each client without a session last listed tools.
type listings struct {
	mu   sync.Mutex
	last lru.Map[request.Who, time.Time]
}

// listingTime is how long the last tools/list of a client without a session is remembered. After that, the client counts as
// a new one.
const listingTime = 30 * time.Minute

// listsFirst reports whether a tools/list is the first of its session in this process. Without a session, it reports whether
// the principal's client program has listed no tools within listingTime. Only the first list costs the client tokens: a later
// list replaces the first in the requests to the model.
func (f *Front) listsFirst(r *incoming) bool {
	if r.session != nil {
		return !r.session.listed.Swap(true)
	}
	l := &f.listings
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.last.Get(r.event.Who)
	first := time.Since(*last) > listingTime
	*last = r.event.Began
	return first
}

// recovered must be deferred. If the request has panicked, it calls failed with the error for the client, so that the process
// goes on.
func (f *Front) recovered(r *incoming, failed func(*rpcError)) {
	if what := recover(); what != nil {
		f.log.Error("panic in a request", "method", sanitize.Line(r.Method, maxLogged), "panic", what, "stack", string(debug.Stack()))
		failed(&rpcError{code: mcp.INTERNAL_ERROR, message: "internal error of mcpx; its log says more. The request may have been executed"})
	}
}

// maxLogged is the highest number of characters of a method's name in the log.
const maxLogged = 80

// answeredWith records in an event how a request was answered. code is the JSON-RPC error code, or 0 for a result. bytes is the
// length of the answer, which is not recorded if the client has cancelled the request. If the executor has recorded an outcome
// or a size already (for a tools/call), these stay.
func answeredWith(e *request.Event, code, bytes int) {
	if e.Code = code; code != 0 && e.Outcome == "" {
		e.Outcome = fmt.Sprintf("ERROR %d", code)
	}
	if e.SentBytes == 0 && !e.Cancelled() {
		e.SentBytes = bytes
	}
}

// ended ends the events of requests, which calls the observers.
func (f *Front) ended(events ...*request.Event) {
	for _, e := range events {
		f.options.Journal.End(e)
	}
}

// traced hands a message to Options.Trace.
func (f *Front) traced(peer string, received bool, message []byte) {
	if f.options.Trace != nil {
		f.options.Trace(peer, received, message)
	}
}

// from returns what each message to a server takes over from the client's request.
func (r *incoming) from() request.From {
	from := request.From{Client: r.client, Meta: r.others, Sink: r.sink(), Event: r.event}
	if r.modern() {
		from.Input = r.input
	}
	return from
}

// Sessions returns the number of legacy sessions over HTTP that this process has in memory. If a session was removed from memory
// because it was idle, it is not counted, even if its client may still continue it.
func (f *Front) Sessions() int {
	f.sessions.mu.RLock()
	defer f.sessions.mu.RUnlock()
	return len(f.sessions.byID)
}
