package mcptest

import (
	"encoding/json"
	"net"
	"sync"
	"sync/atomic"
)

// Log returns what has happened so far; in a long run only the last 10,000 to 20,000 entries.
func (h *HTTPServer) Log() Log { return h.srv.rec.log() }

// Count returns how many messages with that method arrived, or of all methods if it is empty. Unlike Log it forgets
// nothing.
func (h *HTTPServer) Count(method string) int { return h.srv.rec.count(method) }

// Sessions returns how many legacy sessions are open.
func (h *HTTPServer) Sessions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions)
}

// AnswerSSE sets whether every request is answered by an event stream from now on, or by plain JSON where possible.
func (h *HTTPServer) AnswerSSE(always bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asSSE = always
}

// SetTools replaces the tools by this raw JSON array and tells all clients.
func (h *HTTPServer) SetTools(tools json.RawMessage) {
	h.srv.mu.Lock()
	h.srv.tools, h.srv.offered = tools, nil
	h.srv.mu.Unlock()
	h.Notify("notifications/tools/list_changed", `{}`)
}

// Notify sends a notification to all clients that listen. params is a JSON
// object.
func (h *HTTPServer) Notify(method, params string) { h.srv.notify(method, params) }

// KillSession forgets a legacy session: its open requests end without an answer, and later ones get 404. It reports
// whether the session existed.
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

// takeSessions empties the table of sessions, so that each session ends only once.
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

// Restart simulates a crash and a new start: every connection is reset and every session forgotten.
func (h *HTTPServer) Restart() {
	h.life.Add(1)
	// The sessions are forgotten before the reset, so that no client can still use them, but they end after it, as
	// otherwise their streams would end properly.
	sessions := h.takeSessions()
	h.gate.closeAll()
	for _, ses := range sessions {
		h.end(ses)
	}
}

// Down resets all connections and refuses new ones until Up. The port stays bound, so that no other process gets it.
// Sessions are forgotten.
func (h *HTTPServer) Down() {
	h.gate.down.Store(true)
	h.Restart()
}

// Up ends Down.
func (h *HTTPServer) Up() { h.gate.down.Store(false) }

// gate is a listener that knows its open connections and can refuse new ones.
type gate struct {
	net.Listener
	down atomic.Bool
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// Accept resets what comes while the gate is down.
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

// gatedConn leaves the gate when it is closed.
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
