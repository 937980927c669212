package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/coder/websocket"

	"mcpx/internal/base/wire"
)

// socket is the Conn of a WebSocket. Each WebSocket message is one JSON-RPC message.
type socket struct {
	conn  *websocket.Conn
	raw   net.Conn // the network connection that conn uses
	limit int64
	peer  string // who is at the other end, for errors
}

const (
	// farewell bounds how long Close waits for the server's close frame.
	farewell = time.Second
	// frameBytes is the maximum size of one frame. A long message is split into frames, so that pings and pongs can be sent
	// in between.
	frameBytes = 64 << 10
)

// dial opens a WebSocket. raw is its network connection.
func dial(ctx context.Context, url string, options *websocket.DialOptions) (
	conn *websocket.Conn, raw net.Conn, answer *http.Response, err error,
) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { raw = got.Conn }})
	conn, answer, err = websocket.Dial(ctx, url, options)
	return conn, raw, answer, err
}

// dialWebSocket opens a WebSocket with the subprotocol mcp. Redirects, proxies and logins work as over HTTP.
func (d *Dialer) dialWebSocket(ctx context.Context) (Link, error) {
	options := &websocket.DialOptions{HTTPClient: newHTTPClient(d.Remote), HTTPHeader: http.Header{}, Subprotocols: []string{"mcp"}}
	for name, value := range d.Remote.Headers {
		options.HTTPHeader.Set(name, value)
	}
	conn, raw, response, err := dial(ctx, d.address, options)
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
	return newStreamLink(d).use(&socket{conn, raw, d.MaxMessage, "the server"}, nil), nil
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

// ClosedError means that the other end has closed the WebSocket with this code and reason.
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
		if err := s.write(message); err != nil {
			return s.closedBy(err)
		}
	}
	return nil
}

func (s *socket) write(message []byte) error {
	ctx := context.Background()
	if len(message) <= frameBytes {
		return s.conn.Write(ctx, websocket.MessageText, message)
	}
	frames, err := s.conn.Writer(ctx, websocket.MessageText)
	for ; err == nil && len(message) > 0; message = message[min(frameBytes, len(message)):] {
		_, err = frames.Write(message[:min(frameBytes, len(message))])
	}
	if err != nil {
		return err
	}
	return frames.Close()
}

func (s *socket) Close() error {
	s.closeWith(websocket.StatusNormalClosure, "")
	return nil
}

// closeWith sends a close frame and ends the connection, at the latest after the time farewell, even if the other end
// does not answer.
func (s *socket) closeWith(code websocket.StatusCode, reason string) {
	over := time.AfterFunc(farewell, s.cut)
	defer over.Stop()
	_ = s.conn.Close(code, reason)
}

// cut ends the connection at once, even while conn.Close is running. Therefore it closes the network connection itself:
// conn.CloseNow would wait until that Close has ended.
func (s *socket) cut() {
	if s.raw == nil { // only in tests there is no network connection
		_ = s.conn.CloseNow()
		return
	}
	_ = s.raw.SetDeadline(time.Unix(1, 0)) // otherwise Close could block, because closing a TLS connection writes to it
	_ = s.raw.Close()
}
