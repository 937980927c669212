package front

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/upstream"
	"mcpx/internal/wire"
)

const (
	// sessionIdle is how long mcp-go keeps a legacy session without requests.
	sessionIdle = 30 * time.Minute
	// refresh is how often mcp-go is told that a session is alive whose calls it
	// does not see.
	refresh = 5 * time.Minute
)

// httpSession is a legacy session over HTTP.
type httpSession struct {
	id, client string
	refreshed  atomic.Int64 // when mcp-go last saw it, Unix nanoseconds
	least      atomic.Value // mcp.LoggingLevel that was asked for; unset = none
	open       openRequests // calls that are answered here
	alive      context.Context
	end        context.CancelCauseFunc // ends alive, and with it all that is open
}

// errSessionEnded is why calls are ended whose session was.
var errSessionEnded = errors.New("the session was ended; the call may have been executed")

// sessions are the legacy sessions that mcp-go has registered.
type sessions struct{ byID sync.Map }

func (s *sessions) add(id, client string) {
	session := &httpSession{id: id, client: client}
	session.alive, session.end = context.WithCancelCause(context.Background())
	session.refreshed.Store(time.Now().UnixNano())
	s.byID.Store(id, session)
}

func (s *sessions) remove(id string) {
	if found, ok := s.byID.LoadAndDelete(id); ok {
		found.(*httpSession).end(errSessionEnded)
	}
}

func (s *sessions) get(id string) *httpSession {
	if id == "" {
		return nil
	}
	found, _ := s.byID.Load(id)
	session, _ := found.(*httpSession)
	return session
}

// notice takes from a message what concerns the calls that are answered here;
// mcp-go gets the message as well.
func (s *httpSession) notice(m wire.Message) {
	switch m.Method {
	case "notifications/cancelled":
		s.open.cancelled(m.Params)
	case string(mcp.MethodSetLogLevel):
		s.least.Store(levelIn(m.Params))
	}
}

func (s *httpSession) level() mcp.LoggingLevel {
	level, _ := s.least.Load().(mcp.LoggingLevel)
	return level
}

// levelIn reads the params of logging/setLevel; empty if there is no such level.
func levelIn(params json.RawMessage) mcp.LoggingLevel {
	var p struct {
		Level mcp.LoggingLevel `json:"level"`
	}
	if json.Unmarshal(params, &p) != nil || !slices.Contains(upstream.LogLevels, p.Level) {
		return ""
	}
	return p.Level
}

// streamOrEnd serves GET and DELETE of the legacy era.
func (h *httpFront) streamOrEnd(w http.ResponseWriter, r *http.Request, session *httpSession) {
	switch {
	case r.Header.Get("Mcp-Session-Id") == "":
		http.Error(w, "the header Mcp-Session-Id is missing; send initialize first", http.StatusBadRequest)
		return
	case session == nil:
		http.Error(w, "no such session; send initialize", http.StatusNotFound)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if r.Method == http.MethodGet {
		defer context.AfterFunc(session.alive, cancel)()
	}
	h.mcp.ServeHTTP(w, r.WithContext(ctx))
}

// keep tells mcp-go from time to time that a session is in use; it reports false
// if mcp-go does not have it any more.
func (h *httpFront) keep(s *httpSession, r *http.Request) bool {
	last, now := s.refreshed.Load(), time.Now().UnixNano()
	if time.Duration(now-last) < refresh || !s.refreshed.CompareAndSwap(last, now) {
		return true
	}
	ping := r.Clone(r.Context())
	ping.Body = io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":"alive","method":"ping"}`))
	answer := &statusOnly{header: make(http.Header), status: http.StatusOK}
	h.mcp.ServeHTTP(answer, ping)
	return answer.status == http.StatusOK
}

// statusOnly is a response of which nobody reads the body.
type statusOnly struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (s *statusOnly) Header() http.Header { return s.header }

// WriteHeader implements http.ResponseWriter.
func (s *statusOnly) WriteHeader(status int) { s.status = status }

// Write implements http.ResponseWriter.
func (*statusOnly) Write(p []byte) (int, error) { return len(p), nil }
