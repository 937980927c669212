package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"mcpx/internal/wire"
)

const (
	// sessionIdle is how long mcp-go keeps a legacy session without requests.
	sessionIdle = 30 * time.Minute
	// refresh is how often a session's call goes through mcp-go, which then
	// knows that the session is alive.
	refresh = 5 * time.Minute
)

// HTTP is the streamable HTTP endpoint of both eras. It trusts its caller to
// have checked Origin, size and cancellations without a session (package
// httpd).
//
// mcp-go does the protocol. Calls of legacy sessions are answered here from the
// raw bytes: mcp-go parses each message six times, which is more work than the
// call, and mixes up what belongs to the calls of one session (see callStream).
func (f *Front) HTTP() http.Handler {
	streamable := server.NewStreamableHTTPServer(f.server,
		server.WithStateful(true),
		server.WithSessionIdleTTL(sessionIdle),
		server.WithHeartbeatInterval(25*time.Second),
		server.WithStreamableHTTPLogger(f.log),
	)
	f.serving.Lock()
	f.servers = append(f.servers, streamable)
	f.serving.Unlock()
	return &httpFront{front: f, mcp: streamable}
}

type httpFront struct {
	front *Front
	mcp   http.Handler
}

// httpSession is a legacy session over HTTP.
type httpSession struct {
	client    string
	refreshed atomic.Int64 // when mcp-go last saw it, Unix nanoseconds
	least     atomic.Value // mcp.LoggingLevel that was asked for; unset = none

	mu      sync.Mutex
	cancels map[string]context.CancelFunc // of calls answered here, by raw id
}

// sessions are the legacy sessions that mcp-go has registered.
type sessions struct{ byID sync.Map }

func (s *sessions) add(id, client string) {
	session := &httpSession{client: client, cancels: make(map[string]context.CancelFunc)}
	session.refreshed.Store(time.Now().UnixNano())
	s.byID.Store(id, session)
}

func (s *httpSession) level() mcp.LoggingLevel {
	level, _ := s.least.Load().(mcp.LoggingLevel)
	return level
}

func (s *sessions) remove(id string) { s.byID.Delete(id) }

func (s *sessions) get(id string) *httpSession {
	if id == "" {
		return nil
	}
	found, _ := s.byID.Load(id)
	session, _ := found.(*httpSession)
	return session
}

// ReadBody is the body of a request that has been read and parsed already: who
// stands before the endpoint has looked into it, and need not have it done twice.
type ReadBody struct {
	*bytes.Reader
	data    []byte
	message wire.Message
}

// NewReadBody makes a body of what was read and parsed.
func NewReadBody(data []byte, message wire.Message) *ReadBody {
	return &ReadBody{bytes.NewReader(data), data, message}
}

// Close implements io.Closer.
func (*ReadBody) Close() error { return nil }

// readBody returns the body of a request, parsed if it is one message.
func readBody(r *http.Request) (*ReadBody, error) {
	if body, ok := r.Body.(*ReadBody); ok {
		return body, nil
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	message, err := wire.Parse(data)
	if err != nil {
		message = wire.Message{} // mcp-go shall say what is wrong with it
	}
	return NewReadBody(data, message), nil
}

// ServeHTTP implements http.Handler.
func (h *httpFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	session := h.front.sessions.get(r.Header.Get("Mcp-Session-Id"))
	if r.Method != http.MethodPost || session == nil || !plainJSON(r) {
		h.mcp.ServeHTTP(w, r)
		return
	}
	body, err := readBody(r)
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	if h.answer(w, r, session, body) {
		return
	}
	r.Body = body
	h.mcp.ServeHTTP(w, r)
}

// plainJSON reports whether a request says nothing that mcp-go has to judge.
func plainJSON(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	accept := r.Header.Get("Accept")
	version := r.Header.Get("Mcp-Protocol-Version")
	return err == nil && media == "application/json" &&
		(strings.Contains(accept, "application/json") || strings.Contains(accept, "*/*")) &&
		(version == "" || (mcp.IsValidProtocolVersion(version) && !mcp.IsModernProtocol(version)))
}

// answer answers a call of a legacy session; it reports false, with nothing
// written, where mcp-go has to.
func (h *httpFront) answer(w http.ResponseWriter, r *http.Request, session *httpSession, body *ReadBody) bool {
	m := body.message
	if m.Method == "notifications/cancelled" {
		session.cancelled(m.Params)
		return false // mcp-go has calls of its own
	}
	if m.Method == string(mcp.MethodSetLogLevel) {
		session.least.Store(levelIn(m.Params))
	}
	if m.Method != "tools/call" || m.ID == nil || time.Since(time.Unix(0, session.refreshed.Load())) > refresh {
		session.refreshed.Store(time.Now().UnixNano())
		return false
	}
	call, ok := readCall(m.Params)
	if !ok || call.modern || (call.name != InspectTool && call.name != ExecTool) || !json.Valid(body.data) {
		return false
	}
	ctx, cancel := h.front.callContext(r.Context())
	defer session.track(string(m.ID), cancel)()
	c := caller{
		client: session.client, session: r.Header.Get("Mcp-Session-Id"), meta: call.meta,
		structured: h.front.structured(session.client, r.Header),
	}
	stream := &callStream{w: w}
	defer stream.close()
	if takesEvents(r) {
		stream.tell(h.front, &c, call.token, session.level())
	}
	result, _, err := h.front.call(ctx, c, call.name, call.arguments)
	stream.close()
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errStopping):
		stream.answer(fault(m.ID, mcp.REQUEST_INTERRUPTED, "cancelled: "+errStopping.Error()))
		return true
	case err != nil:
		// Taken back, or nobody is there any more: there is nothing to say.
		stream.nothing()
		return true
	}
	stream.answer(reply(m.ID, "result", h.front.encodeResult(result, false)))
	return true
}

func takesEvents(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "text/event-stream") || strings.Contains(accept, "*/*")
}

// levelIn reads the params of logging/setLevel; empty if there is no such level.
func levelIn(params json.RawMessage) mcp.LoggingLevel {
	var p struct {
		Level mcp.LoggingLevel `json:"level"`
	}
	if json.Unmarshal(params, &p) != nil || !slices.Contains(levels, p.Level) {
		return ""
	}
	return p.Level
}

// track keeps cancel for the time of a call; the func it returns ends that.
func (s *httpSession) track(id string, cancel context.CancelFunc) func() {
	s.mu.Lock()
	s.cancels[id] = cancel
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		delete(s.cancels, id)
		s.mu.Unlock()
		cancel()
	}
}

func (s *httpSession) cancelled(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	cancel := s.cancels[string(p.ID)]
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}
