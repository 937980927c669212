package httpd

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/request"
)

// handler builds the chain of handlers that each request passes. It begins with the innermost one: each further line puts a new
// handler around h.
func (o *Options) handler() http.Handler {
	o.Identity = cmp.Or(o.Identity, &identity.Verifier{})
	o.Limits = cmp.Or(o.Limits, limits.New(conf.Limits{}))
	o.draining = new(atomic.Bool)
	var h http.Handler = o.pages()
	refused := &refusals{log: o.Logger}
	flood := &flood{options: o, pauses: make(chan struct{}, maxPaused)}
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

// Handler returns the handler that [Serve] uses, for another program's HTTP server. Unless anywhere is true, it refuses requests
// that came to an address other than loopback. stop ends all open requests and the event streams of the page: the shutdown of the
// program's server would wait for them.
func Handler(o Options, anywhere bool) (h http.Handler, stop func()) {
	return &embedded{next: o.handler(), anywhere: anywhere, log: o.Logger}, func() {
		o.Endpoint.EndStreams()
		if o.Page != nil {
			o.Page.EndStreams()
		}
		o.Endpoint.EndCalls()
	}
}

// embedded is the outermost handler in another program's HTTP server. mcpx tells clients without a principal apart by their
// connections, but it does not know the connections of that server. So embedded gives each request a connection of its own.
// Otherwise two clients would seem to be one.
type embedded struct {
	next     http.Handler
	anywhere bool
	log      *slog.Logger
	last     atomic.Uint64
}

// ServeHTTP implements http.Handler.
func (h *embedded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); !h.anywhere && !(ok && local.IP.IsLoopback()) {
		h.log.Warn("refused: a request from another machine, and there is no authentication", "remote", r.RemoteAddr)
		http.Error(w, "this address is not served without authentication", http.StatusForbidden)
		return
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	h.next.ServeHTTP(w, r.WithContext(caller.Over(ctx, &caller.Connection{ID: h.last.Add(1), Life: ctx})))
}

// recovered is the outermost handler, except for embedded. It answers 500 if a handler panics; without it, net/http would close the
// connection. It does not stop the panic http.ErrAbortHandler. At the end of each request, it ends the events ([request.Event]) of
// the messages in the request.
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

// answer is the ResponseWriter that all handlers of the chain share. Handlers store in it what recovered needs after the response
// was written.
type answer struct {
	http.ResponseWriter
	status    int               // 0 if WriteHeader was not called, which means 200
	principal *caller.Principal // set by authenticated; nil if the sender is unknown
	reason    string            // why the request is refused; empty if the status says enough
	events    []*request.Event  // the events of the answered messages; set by endpoint
}

// finish flushes the response and ends the events of its messages. If the status is an HTTP error, it also makes an event about the
// refusal. It runs after all other handlers. At this point, the call no longer counts against the caller's limit of concurrent
// calls. So a client that sends its next request after the response is not refused.
func (h *recovered) finish(a *answer, r *http.Request) {
	if len(a.events) > 0 { // refusals are not flushed, so that net/http adds a Content-Length to them
		_ = http.NewResponseController(a.ResponseWriter).Flush()
	}
	if a.status >= http.StatusBadRequest {
		remote, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			remote = r.RemoteAddr
		}
		e := h.journal.Begin("", nil)
		e.By(a.principal)
		e.Refused = &request.Refused{Status: a.status, Verb: r.Method, Path: r.URL.Path, Remote: remote, Reason: a.reason}
		a.events = append(a.events, e)
	}
	for _, e := range a.events {
		h.journal.End(e)
	}
}

// answerOf returns the answer of a request. w is the ResponseWriter that a handler of the chain got.
func answerOf(w http.ResponseWriter) *answer { return w.(*answer) }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the ResponseWriter of net/http. http.ResponseController calls it.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
