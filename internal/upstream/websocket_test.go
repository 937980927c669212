package upstream

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// sockets serves fake servers over WebSocket, one for each connection.
type sockets struct {
	*httptest.Server
	mu   sync.Mutex
	open []*websocket.Conn
}

func overSockets(t *testing.T, fake mcptest.Spec) *sockets {
	s := &sockets{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"mcp"}})
		if err != nil || conn.Subprotocol() != "mcp" {
			t.Errorf("subprotocol %q, %v", conn.Subprotocol(), err)
			return
		}
		s.mu.Lock()
		s.open = append(s.open, conn)
		s.mu.Unlock()
		stdin, stdout, _ := fake.Pipe(t)
		defer stdin.Close()
		go func() { // the goroutine ends with the fake server
			for reader := wire.NewReader(stdout, 1<<26, nil); ; {
				message, err := reader.Read()
				if err != nil || conn.Write(context.Background(), websocket.MessageText, message) != nil {
					_ = conn.Close(websocket.StatusInternalError, "out of \x1b[1mmemory")
					return
				}
			}
		}()
		conn.SetReadLimit(-1)
		for {
			_, message, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			if _, err := io.WriteString(stdin, string(message)+"\n"); err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sockets) spec() Spec {
	return Spec{Options: transport.Options{Type: transport.WebSocket, Remote: transport.Remote{URL: "ws" + strings.TrimPrefix(s.URL, "http"), Headers: map[string]string{"Authorization": "Bearer sesame"}}}}
}

func TestWebSocket(t *testing.T) {
	mcptest.NoLeaks(t)
	s := overSockets(t, mcptest.Spec{})
	u := connect(t, s.spec())
	awaitState(t, u, catalog.Ready)
	mustEcho(t, u)
	s.mu.Lock()
	_ = s.open[0].CloseNow()
	s.mu.Unlock()
	mcptest.WaitFor(t, "the loss", patience, func() bool { return u.Status().Restarts == 1 })
	awaitState(t, u, catalog.Ready)
	mustEcho(t, u)
}

// TestWebSocket_Refused: if the server refuses the connection, the error has the reason and advice.
func TestWebSocket_Refused(t *testing.T) {
	mcptest.NoLeaks(t)
	spec := overSockets(t, mcptest.Spec{}).spec()
	spec.Remote.Headers = nil
	contains(t, "reason", awaitState(t, connect(t, spec), catalog.Unavailable).Reason, "401", "who are you?", "check the headers (token) of this server")
}

// TestWebSocket_Faults: a message over the size limit makes only its own call fail; a message that ends the fake
// server ends the session.
func TestWebSocket_Faults(t *testing.T) {
	mcptest.NoLeaks(t)
	spec := overSockets(t, mcptest.Spec{}).spec()
	spec.MaxMessage = 64 << 10
	u := connect(t, spec)
	awaitState(t, u, catalog.Ready)
	_, err := u.Call(t.Context(), request.Request{Method: "tools/call", Params: request.ToolParams("big", []byte(`{"bytes":300000}`))})
	if err == nil || !strings.Contains(err.Error(), "limit of 65536 bytes") {
		t.Errorf("got %v", err)
	}
	mustEcho(t, u)
	_, err = u.Call(t.Context(), request.Request{Method: "tools/call", Params: request.ToolParams("crash", nil)})
	if err == nil || !strings.Contains(err.Error(), "the server closed the WebSocket (1011): out of memory") {
		t.Errorf("got %v", err)
	}
	awaitState(t, u, catalog.Ready)
	mustEcho(t, u)
}
