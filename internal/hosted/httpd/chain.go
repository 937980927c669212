package httpd

import (
	"log/slog"
	"net/http"
	"runtime/debug"
)

// handler is the chain of handlers that each request passes. It is built from its end: a handler
// that is put around the others here comes before them.
func (o *Options) handler() http.Handler {
	var h http.Handler = o.pages()
	refused := &refusals{log: o.Logger}
	flood := &flood{options: o, pauses: make(chan struct{}, mostPaused)}
	h = flood.afterAuth(h)
	h = &authenticated{h, o.Identity, refused}
	if o.AuthServer != nil {
		h = o.AuthServer(h)
	}
	h = flood.beforeAuth(h)
	if o.TLS != nil {
		h = o.TLS.trusted(h)
	}
	h = &shared{h, o}
	h = &guard{next: h, options: o, refusals: refused, flood: flood}
	if o.Refused != nil {
		h = &audited{h, o.Refused}
	}
	return &recovered{h, o.Logger}
}

// recovered is the first handler. It answers a panic with 500; net/http would close the
// connection.
type recovered struct {
	next http.Handler
	log  *slog.Logger
}

// ServeHTTP implements http.Handler.
func (h *recovered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w}
	a.after = a.room[:0]
	defer a.finish()
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
	status    int    // 0 = no header was written, which is 200
	principal string // whom the answer is for, from authenticated
	after     []func()
	room      [2]func() // the first memory of after: no call has more than two
}

// Afterwards has do called when the request has ended for all handlers, and the client has its
// answer.
func (a *answer) Afterwards(do func()) { a.after = append(a.after, do) }

// finish sends the answer and does what happens after it. The limits of the caller have its
// place back before: the next request may come at once.
func (a *answer) finish() {
	if len(a.after) == 0 {
		return
	}
	_ = http.NewResponseController(a.ResponseWriter).Flush()
	for _, do := range a.after {
		do()
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
