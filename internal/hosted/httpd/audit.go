package httpd

import (
	"net"
	"net/http"

	"mcpx/internal/request"
)

// audited ends an event for each request that gets an HTTP error, whichever handler wrote it.
type audited struct {
	next    http.Handler
	journal *request.Journal
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
	a.journal.End(&request.Event{
		Who:     request.Who{Principal: answer.principal},
		Refused: &request.Refused{Status: answer.status, Verb: r.Method, Path: r.URL.Path, Remote: remote},
	})
}
