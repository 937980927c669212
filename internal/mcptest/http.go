package mcptest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// HTTPServer is a fake that is served over HTTP in the test process. Its methods control the faults. They are safe
// for concurrent use.
type HTTPServer struct {
	// URL is the URL of the endpoint, including the path.
	URL string

	srv  *server
	web  *httptest.Server
	gate *gate
	// life counts restarts. With it, a request that a restart has ended is distinguished from a cancelled one.
	life atomic.Int64

	mu       sync.Mutex
	sessions map[string]*httpSession
	faults   []*Fault
	asSSE    bool
	parked   map[string]parked // answers to be fetched later, by the ID of the event to resume from
	polls    int               // how many event IDs were given out
}

// httpSession is a legacy session. A message that belongs to none, such as a modern one, gets an httpSession of its own, without
// an ID. stream carries the messages that the server sends without a request: it is the GET stream, or the only stream of the
// SSE transport, which carries the answers too. It is nil if no stream is open.
type httpSession struct {
	*session
	gone   chan struct{} // closed when the session is forgotten
	mu     sync.Mutex
	stream *eventWriter
}

func (hs *httpSession) current() *eventWriter {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.stream
}

func (hs *httpSession) attach(w *eventWriter) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.stream = w
}

// HTTP serves the fake as streamable HTTP on a free port of 127.0.0.1, at /mcp, until the test ends. Legacy clients
// get a session, unless Spec.NoSession is set. Modern clients have no session; their headers are checked against the
// body, and they cancel a request by closing its response stream.
func (s Spec) HTTP(t testing.TB) *HTTPServer {
	t.Helper()
	h := s.serveHTTP(t, false)
	h.URL = h.web.URL + "/mcp"
	return h
}

func (s Spec) serveHTTP(t testing.TB, sse bool) *HTTPServer {
	t.Helper()
	srv, err := newServer(s, true)
	if err != nil {
		t.Fatal(err)
	}
	h := &HTTPServer{srv: srv, sessions: map[string]*httpSession{}, parked: map[string]parked{}, asSSE: s.AnswerSSE}
	srv.exit = func(int) { h.Restart() }
	srv.retire = func(int) { h.KillSessions() }
	mux := http.NewServeMux()
	if sse {
		mux.HandleFunc("/sse", h.handled(h.serveEvents))
		mux.HandleFunc("/messages", h.handled(h.serveMessages))
	} else {
		mux.HandleFunc("/mcp", h.handled(h.serveMCP))
	}
	h.web = httptest.NewUnstartedServer(mux)
	h.gate = &gate{Listener: h.web.Listener, open: map[net.Conn]struct{}{}}
	h.web.Listener = h.gate
	h.web.Config.ErrorLog = nil
	h.web.Start()
	srv.rec.add(Entry{Event: EventStart})
	t.Cleanup(func() {
		srv.cancel()
		h.gate.closeAll()
		h.web.Close()
		srv.stop()
	})
	return h
}

// handled wraps a handler. It records the request, refuses it if the token is missing or wrong, and makes the server wait until
// the handler has returned.
func (h *HTTPServer) handled(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !h.srv.enter() {
			return
		}
		defer h.srv.wg.Done()
		h.srv.rec.add(Entry{Event: EventHTTP, Session: r.Header.Get("Mcp-Session-Id"), Text: r.Method + " " + r.URL.Path, Header: r.Header.Clone()})
		if token := h.srv.spec.Token; token != "" && r.Header.Get("Authorization") != "Bearer "+token {
			Unauthorized().write(w, "null")
			return
		}
		f(w, r)
	}
}

func (h *HTTPServer) serveMCP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		h.servePost(w, r)
	case http.MethodGet:
		h.serveGet(w, r)
	case http.MethodDelete:
		h.serveDelete(w, r)
	default:
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	}
}

// servePost handles a POST, which has one message from a client.
func (h *HTTPServer) servePost(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has disconnected
	}
	env, ok := parseEnvelope(raw)
	if !ok {
		h.srv.garbage(&session{}, raw)
		refuse(w, http.StatusBadRequest, "null", &rpcError{code: -32700, message: "Parse error"})
		return
	}
	h.srv.record(&session{id: r.Header.Get("Mcp-Session-Id")}, raw, env)
	fault := h.fault(env.Method)
	if fault != nil && fault.before(h, w, r, true, string(env.ID)) {
		return
	}
	var p params
	json.Unmarshal(env.Params, &p)
	modern := h.srv.isModern(env.Method, p)
	ses := h.newSession("")
	if !modern {
		if ses, ok = h.sessionFor(w, r, env); !ok {
			return
		}
	}
	if modern && !checkHeaders(w, r, env, p) {
		return
	}
	if !env.isRequest() {
		h.srv.take(ses.session, env)
		if fault != nil && fault.after(h, w, r, "null", h.lazily(w), []message{text(`{}`)}) == nil {
			return
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	h.serveRequest(w, r, ses, env, fault)
}

// serveRequest runs one request, and writes its answer to w.
func (h *HTTPServer) serveRequest(w http.ResponseWriter, r *http.Request, ses *httpSession, env envelope, fault *Fault) {
	c := h.srv.begin(ses.session, env)
	out := &postWriter{h: h, w: w, r: r, id: c.id, fault: fault, modern: c.modern}
	c.note, c.reply = out.note, out.reply
	if env.Method == "initialize" && ses.id != "" {
		w.Header().Set("Mcp-Session-Id", ses.id)
	}
	life := h.life.Load()
	stop := context.AfterFunc(r.Context(), func() {
		switch {
		case h.life.Load() != life:
			c.cancel()
		case c.modern:
			h.srv.abort(c, "disconnect")
		case c.isOpen():
			h.srv.rec.add(Entry{Event: EventDisconnect, Session: ses.id, ID: env.ID, Method: env.Method, Tool: c.tool()})
		}
	})
	defer stop()
	h.srv.serve(c)
	out.finish()
}

// sessionFor finds or makes the legacy session that a message belongs to. If there is none, it answers with an error, and
// reports false.
func (h *HTTPServer) sessionFor(w http.ResponseWriter, r *http.Request, env envelope) (*httpSession, bool) {
	id := r.Header.Get("Mcp-Session-Id")
	h.mu.Lock()
	defer h.mu.Unlock()
	spec := h.srv.spec
	if spec.NoSession || env.Method == "server/discover" && (spec.SilentUnknown || spec.ExitOnDiscover) {
		ses := h.newSession("")
		ses.ready = true
		return ses, true
	}
	if env.Method == "initialize" {
		ses := h.newSession(rand.Text())
		h.sessions[ses.id] = ses
		return ses, true
	}
	if ses := h.sessions[id]; ses != nil {
		return ses, true
	}
	if id == "" {
		refuse(w, http.StatusBadRequest, "null", &rpcError{code: -32000, message: "Bad Request: Mcp-Session-Id header is required"})
	} else {
		spec.Forgotten.write(w, string(env.ID))
	}
	return nil, false
}

func (h *HTTPServer) newSession(id string) *httpSession {
	hs := &httpSession{gone: make(chan struct{})}
	hs.session = newSession(id, func(m message) error {
		stream := hs.current()
		if stream == nil {
			return errors.New("the client has no stream open")
		}
		return stream.event(m)
	})
	return hs
}

// serveGet serves the GET stream of a legacy session, which has the messages that are not part of any request. A GET that
// resumes gets the answer of FaultPoll or FaultBreak instead.
func (h *HTTPServer) serveGet(w http.ResponseWriter, r *http.Request) {
	if f := h.fault("GET"); f != nil && f.before(h, w, r, false, "null") {
		return
	}
	h.mu.Lock()
	ses := h.sessions[r.Header.Get("Mcp-Session-Id")]
	h.mu.Unlock()
	switch {
	case !h.srv.spec.legacy() || h.srv.spec.NoGET || h.srv.spec.NoSession:
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	case ses == nil:
		h.srv.spec.Forgotten.write(w, "null")
		return
	}
	if h.unpark(w, r.Header.Get("Last-Event-Id")) {
		return
	}
	stream := newEventWriter(w, h.srv.spec)
	ses.attach(stream) // before open, so that no message is lost after the client sees that the stream is open
	stream.open()
	select {
	case <-r.Context().Done():
	case <-ses.gone:
	case <-h.srv.ctx.Done():
	}
	stream.close()
}

func (h *HTTPServer) serveDelete(w http.ResponseWriter, r *http.Request) {
	if f := h.fault("DELETE"); f != nil && f.before(h, w, r, false, "null") {
		return
	}
	id := r.Header.Get("Mcp-Session-Id")
	switch {
	case !h.srv.spec.legacy() || h.srv.spec.NoSession:
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	case h.KillSession(id):
		w.WriteHeader(http.StatusOK)
	default:
		refuse(w, http.StatusNotFound, "null", &rpcError{code: -32001, message: "Session not found"})
	}
}

// checkHeaders refuses a request of the modern era whose headers do not match its body. It reports whether they match.
func checkHeaders(w http.ResponseWriter, r *http.Request, env envelope, p params) bool {
	want := map[string]string{"Mcp-Protocol-Version": p.Meta.Version, "Mcp-Method": env.Method}
	if env.Method == "tools/call" {
		want["Mcp-Name"] = p.Name
	}
	if !env.isRequest() {
		want = nil
	}
	for name, value := range want {
		if got := r.Header.Get(name); value != "" && got != value && decodeHeader(got) != value {
			id := string(env.ID)
			refuse(w, http.StatusBadRequest, id, &rpcError{code: -32020, message: fmt.Sprintf("Header mismatch: %s is %q, the body says %q", name, got, value)})
			return false
		}
	}
	return true
}

// refuse answers with an HTTP status and a JSON-RPC error.
func refuse(w http.ResponseWriter, status int, id string, err *rpcError) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"error":`+err.json()+`}`)
}
