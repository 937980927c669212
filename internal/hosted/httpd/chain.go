package httpd

import (
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"

	"mcpx/internal/request"
)

// handler is the chain of handlers that each request passes. It is built from its end: a handler
// that is put around the others here comes before them.
func (o *Options) handler() http.Handler {
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

// recovered is the first handler. It answers a panic with 500; net/http would close the
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

// answer is the ResponseWriter that recovered gives the chain. It notes what the other handlers
// need to know when the answer is written.
type answer struct {
	http.ResponseWriter
	status    int              // 0 = no header was written, which is 200
	principal string           // whom the answer is for, from authenticated
	events    []*request.Event // of the messages that were answered, from the endpoint
}

// finish sends the answer, and ends the events of its messages, or an event of the refusal where the answer is an HTTP error,
// whichever handler wrote it. By then all handlers have let go of the request, and the caller's place among its
// concurrent requests is free: its next one is not refused.
func (h *recovered) finish(a *answer, r *http.Request) {
	if len(a.events) > 0 { // a refusal that is not flushed gets its Content-Length from net/http
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

// answerOf is the answer that a handler of the chain writes to.
func answerOf(w http.ResponseWriter) *answer { return w.(*answer) }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController find what is below.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
