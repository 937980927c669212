package mcptest

import (
	"encoding/json"
	"net"
	"sync"
	"sync/atomic"
)

// Log returns what has happened so far. After many events, it has only the last 10,000 to 20,000 entries.
func (h *HTTPServer) Log() Log { return h.srv.rec.log() }

// Count returns how many messages with this method have arrived. If method is empty, it counts all messages. Unlike
// Log, it includes old messages.
func (h *HTTPServer) Count(method string) int { return h.srv.rec.count(method) }

// Sessions returns how many legacy sessions are open.
func (h *HTTPServer) Sessions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions)
}

// AnswerSSE sets how requests are answered from now on: with an event stream if always is true, otherwise with plain
// JSON where possible.
func (h *HTTPServer) AnswerSSE(always bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asSSE = always
}

// SetTools replaces the tools by this raw JSON array, and notifies all clients.
func (h *HTTPServer) SetTools(tools json.RawMessage) {
	h.srv.mu.Lock()
	h.srv.tools, h.srv.offered = tools, nil
	h.srv.mu.Unlock()
	h.Notify("notifications/tools/list_changed", `{}`)
}

// Notify sends a notification to all clients that listen for notifications. params is a JSON object.
func (h *HTTPServer) Notify(method, params string) { h.srv.notify(method, params) }

// KillSession forgets a legacy session. Its open requests end without an answer, and later ones get the response
// Spec.Forgotten. It reports whether there was such a session.
func (h *HTTPServer) KillSession(id string) bool {
	h.mu.Lock()
	ses := h.sessions[id]
	delete(h.sessions, id)
	h.mu.Unlock()
	if ses == nil {
		return false
	}
	h.end(ses)
	return true
}

// KillSessions forgets all sessions.
func (h *HTTPServer) KillSessions() {
	for _, ses := range h.takeSessions() {
		h.end(ses)
	}
}

// takeSessions returns all sessions and empties the table, so that each session is ended only once.
func (h *HTTPServer) takeSessions() map[string]*httpSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.sessions
	h.sessions = map[string]*httpSession{}
	return all
}

func (h *HTTPServer) end(ses *httpSession) {
	h.srv.forget(ses.session)
	close(ses.gone)
}

// Restart imitates a crash and a restart: every connection is reset, and every session is forgotten.
func (h *HTTPServer) Restart() {
	h.life.Add(1)
	// The sessions are forgotten before the reset, so that no client can still use them. They are ended after it;
	// otherwise their streams would end properly.
	sessions := h.takeSessions()
	h.gate.closeAll()
	for _, ses := range sessions {
		h.end(ses)
	}
}

// Down resets all connections, and refuses new ones until Up is called. The port stays bound, so that no other
// process gets it. Sessions are forgotten.
func (h *HTTPServer) Down() {
	h.gate.down.Store(true)
	h.Restart()
}

// Up accepts connections again after Down.
func (h *HTTPServer) Up() { h.gate.down.Store(false) }

// gate is a listener that knows its open connections, and can refuse new ones. With it, a test can imitate a crash of the server,
// or a server that is down.
type gate struct {
	net.Listener
	down atomic.Bool
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// Accept resets connections that arrive while down is set.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if g.down.Load() {
			resetConn(conn)
			continue
		}
		g.mu.Lock()
		g.open[conn] = struct{}{}
		g.mu.Unlock()
		return &gatedConn{TCPConn: conn.(*net.TCPConn), gate: g}, nil
	}
}

func (g *gate) closeAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.open {
		resetConn(conn)
	}
	clear(g.open)
}

// gatedConn is a connection that removes itself from the gate when it is closed.
type gatedConn struct {
	*net.TCPConn
	gate *gate
}

func (c *gatedConn) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.open, c.TCPConn)
	c.gate.mu.Unlock()
	return c.TCPConn.Close()
}
