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

// socket is the Conn of a WebSocket: a message of JSON-RPC is a message of it.
type socket struct {
	conn  *websocket.Conn
	limit int64
}

// farewell bounds the wait for the server's half of the end of a WebSocket.
const farewell = time.Second

// dialWebSocket opens a WebSocket with the subprotocol mcp. Redirects, proxies and
// logins work as over HTTP.
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
	conn.SetReadLimit(-1) // Read has its own, after which it can go on
	return newStreamLink(d).use(&socket{conn, d.MaxMessage}, nil), nil
}

// Read implements [Conn].
func (s *socket) Read() ([]byte, error) {
	_, message, err := s.conn.Reader(context.Background()) // Close ends it
	if err != nil {
		return nil, closedBy(err)
	}
	data, err := io.ReadAll(io.LimitReader(message, s.limit+1))
	if err == nil && int64(len(data)) > s.limit {
		return nil, wire.Skip(message, data, s.limit)
	}
	return data, closedBy(err)
}

// closedBy is an error of a WebSocket in the words of its server, where that has closed it.
func closedBy(err error) error {
	if closed, ok := errors.AsType[websocket.CloseError](err); ok {
		text := fmt.Sprintf("the server closed the WebSocket (%d)", closed.Code)
		if closed.Reason != "" {
			text += ": " + closed.Reason
		}
		return errors.New(text)
	}
	return err
}

// Write implements [Conn].
func (s *socket) Write(messages ...[]byte) error {
	for _, message := range messages {
		if err := s.conn.Write(context.Background(), websocket.MessageText, message); err != nil {
			return closedBy(err)
		}
	}
	return nil
}

// Close implements [Conn].
func (s *socket) Close() error {
	over := time.AfterFunc(farewell, func() { _ = s.conn.CloseNow() })
	defer over.Stop()
	_ = s.conn.Close(websocket.StatusNormalClosure, "")
	return nil
}
