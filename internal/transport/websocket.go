package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"mcpx/internal/base/wire"
)

// socket is the Conn of a WebSocket. Each WebSocket message is one JSON-RPC message.
type socket struct {
	conn  *websocket.Conn
	limit int64
	peer  string // who is at the other end, for errors
}

// farewell bounds how long Close waits for the server's close frame.
const farewell = time.Second

// dialWebSocket opens a WebSocket with the subprotocol mcp. Redirects, proxies and logins work as over HTTP.
func (d *Dialer) dialWebSocket(ctx context.Context) (Link, error) {
	options := &websocket.DialOptions{HTTPClient: newHTTPClient(d.Remote), HTTPHeader: http.Header{}, Subprotocols: []string{"mcp"}}
	for name, value := range d.Remote.Headers {
		options.HTTPHeader.Set(name, value)
	}
	conn, response, err := websocket.Dial(ctx, d.address, options)
	if err != nil && response != nil && response.StatusCode != http.StatusSwitchingProtocols {
		return nil, d.statusError(response)
	}
	if refused := unauthorized(err); refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, fmt.Errorf("opening the WebSocket: %w", err)
	}
	conn.SetReadLimit(-1) // Read has its own limit, which does not end the connection
	return newStreamLink(d).use(&socket{conn, d.MaxMessage, "the server"}, nil), nil
}

func (s *socket) Read() ([]byte, error) {
	_, message, err := s.conn.Reader(context.Background()) // returns when Close is called
	if err != nil {
		return nil, s.closedBy(err)
	}
	data, err := io.ReadAll(io.LimitReader(message, s.limit+1))
	if err == nil && int64(len(data)) > s.limit {
		return nil, wire.Skip(message, data, s.limit)
	}
	return data, s.closedBy(err)
}

// ClosedError is a close frame.
type ClosedError struct {
	Code   int
	Reason string
	peer   string
}

func (e *ClosedError) Error() string {
	text := fmt.Sprintf("%s closed the WebSocket (%d)", e.peer, e.Code)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// closedBy returns a [ClosedError] if err is the close frame of a WebSocket, otherwise err.
func (s *socket) closedBy(err error) error {
	if closed, ok := errors.AsType[websocket.CloseError](err); ok {
		return &ClosedError{int(closed.Code), closed.Reason, s.peer}
	}
	return err
}

func (s *socket) Write(messages ...[]byte) error {
	for _, message := range messages {
		if err := s.conn.Write(context.Background(), websocket.MessageText, message); err != nil {
			return s.closedBy(err)
		}
	}
	return nil
}

func (s *socket) Close() error {
	over := time.AfterFunc(farewell, func() { _ = s.conn.CloseNow() })
	defer over.Stop()
	_ = s.conn.Close(websocket.StatusNormalClosure, "")
	return nil
}
