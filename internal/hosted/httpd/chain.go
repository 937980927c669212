package httpd

import (
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"

	"mcpx/internal/request"
)

// handler builds the chain of handlers that each request passes. It starts with the innermost handler: each further
// line wraps the handlers before it.
func (o *Options) handler() http.Handler {
	o.draining = new(atomic.Bool)
	var h http.Handler = o.pages()
	refused := &refusals{log: o.Logger}
	flood := &flood{options: o, pauses: make(chan struct{}, mostPaused)}
	h = flood.afterAuth(h)
	h = &authenticated{h, o.Identity, o.AuthServer, refused}
	h = flood.beforeAuth(h)
	if o.TLS != nil {
		h = o.TLS.trusted(h)
	}
	h = &shared{h, o}
	h = &guard{next: h, options: o, refusals: refused, flood: flood}
	return &recovered{h, o.Journal, o.Logger}
}

// recovered is the outermost handler. It answers 500 if a handler panics; without it, net/http would close the
// connection.
type recovered struct {
	next    http.Handler
	journal *request.Journal
	log     *slog.Logger
}

// ServeHTTP implements http.Handler.
func (h *recovered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w}
	defer h.finish(a, r)
	defer func() {
		if what := recover(); what != nil {
			if what == http.ErrAbortHandler {
				panic(what)
			}
			h.log.Error("panic in a request", "path", r.URL.Path, "panic", what, "stack", string(debug.Stack()))
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
	}()
	h.next.ServeHTTP(a, r)
}

// answer is the ResponseWriter that all handlers of the chain share. Handlers store in it what is needed after the
// response was written.
type answer struct {
	http.ResponseWriter
	status    int              // 0 if WriteHeader was not called, which means 200
	principal string           // set by authenticated
	events    []*request.Event // of the answered messages; set by endpoint
}

// finish flushes the response and ends the events of its messages. For a response with an HTTP error, it adds an
// event about the refusal. It runs after all other handlers, when the caller's concurrency slot is already free, so
// the client's next request is not refused.
func (h *recovered) finish(a *answer, r *http.Request) {
	if len(a.events) > 0 { // only if there are events: without a flush, net/http adds a Content-Length to refusals
		_ = http.NewResponseController(a.ResponseWriter).Flush()
	}
	if a.status >= http.StatusBadRequest {
		remote, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			remote = r.RemoteAddr
		}
		a.events = append(a.events, &request.Event{
			Who:     request.Who{Principal: a.principal},
			Refused: &request.Refused{Status: a.status, Verb: r.Method, Path: r.URL.Path, Remote: remote},
		})
	}
	for _, e := range a.events {
		h.journal.End(e)
	}
}

// answerOf returns the answer behind the ResponseWriter that a handler of the chain was given.
func answerOf(w http.ResponseWriter) *answer { return w.(*answer) }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is called by http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
