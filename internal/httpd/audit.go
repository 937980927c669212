package httpd

import (
	"net"
	"net/http"
)

// Refusal is a request that was answered with an HTTP error.
type Refusal struct {
	Status       int
	Method, Path string // foreign text
	// Remote is the address of the other side, without its port.
	Remote string
	// Principal is the ID of the principal; empty where none was proved.
	Principal string
}

// audited tells of refused requests, those too that no other layer has let in.
type audited struct {
	next    http.Handler
	refused func(Refusal)
}

// ServeHTTP implements http.Handler.
func (a *audited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := &auditedAnswer{ResponseWriter: w}
	a.next.ServeHTTP(answer, r)
	if answer.status < http.StatusBadRequest {
		return
	}
	remote, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		remote = r.RemoteAddr
	}
	a.refused(Refusal{answer.status, r.Method, r.URL.Path, remote, answer.principal})
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
