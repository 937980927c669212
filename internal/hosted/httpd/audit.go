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

// audited calls refused for each request that gets an HTTP error, whichever handler wrote it.
type audited struct {
	next    http.Handler
	refused func(Refusal)
}

// ServeHTTP implements http.Handler.
func (a *audited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.next.ServeHTTP(w, r)
	answer := answerOf(w)
	if answer.status < http.StatusBadRequest {
		return
	}
	remote, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		remote = r.RemoteAddr
	}
	a.refused(Refusal{answer.status, r.Method, r.URL.Path, remote, answer.principal})
}
