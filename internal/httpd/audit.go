package httpd

import (
	"net"
	"net/http"
	"strings"
)

// Request is a request over HTTP that was refused, or that has changed the servers.
type Request struct {
	// Status is that of the answer, at least 400 if it was refused.
	Status       int
	Method, Path string // foreign text
	// Remote is the address of the other side, without its port.
	Remote string
	// Principal is the ID of the principal; empty where none was proved.
	Principal string
}

// Refused reports whether the request got an error.
func (r *Request) Refused() bool { return r.Status >= http.StatusBadRequest }

// audited tells of refused requests, those too that no other layer has let in, and of
// those that have changed the servers.
type audited struct {
	next http.Handler
	tell func(Request)
}

// ServeHTTP implements http.Handler.
func (a *audited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := &auditedAnswer{ResponseWriter: w}
	a.next.ServeHTTP(answer, r)
	changes := strings.HasPrefix(r.URL.Path, "/api/") && r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
	if answer.status < http.StatusBadRequest && !changes {
		return
	}
	remote, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		remote = r.RemoteAddr
	}
	a.tell(Request{max(answer.status, http.StatusOK), r.Method, r.URL.Path, remote, answer.principal})
}

// auditedAnswer notes the status of an answer; 0 = no header was written, which is 200.
type auditedAnswer struct {
	http.ResponseWriter
	status    int
	principal string // noted by authenticated
}

// WriteHeader implements http.ResponseWriter.
func (w *auditedAnswer) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController find what is below.
func (w *auditedAnswer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
