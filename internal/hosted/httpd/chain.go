package httpd

import (
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"

	"mcpx/internal/request"
)

// handler builds the chain of handlers that each request passes, starting with the last: a later line here wraps the
// earlier ones.
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

// recovered is the first handler. It answers a panic with 500, where net/http would close the connection.
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

// answer is the ResponseWriter of the chain. Handlers note in it what is needed once the answer is written.
type answer struct {
	http.ResponseWriter
	status    int              // 0 = no header was written, which means 200
	principal string           // set by authenticated
	events    []*request.Event // of the answered messages, set by endpoint
}

// finish flushes the answer and ends the events of its messages. For an HTTP error from any handler it adds an event
// of the refusal. By then the caller's concurrency slot is free, so its next request is not refused.
func (h *recovered) finish(a *answer, r *http.Request) {
	if len(a.events) > 0 { // without a flush, net/http adds a Content-Length to a refusal
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

// answerOf returns the answer that a handler of the chain writes to.
func answerOf(w http.ResponseWriter) *answer { return w.(*answer) }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
