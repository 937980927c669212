package transport

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
)

// Codes of close frames. RFC 6455 defines all of them except CloseReplaced, which is from its range for applications.
const (
	CloseGoingAway = int(websocket.StatusGoingAway)
	ClosePolicy    = int(websocket.StatusPolicyViolation)
	// CloseReplaced means that another connection has registered under the same name and replaces this one.
	CloseReplaced = 4001
)

const (
	// pingEvery is shorter than the time after which proxies and NAT cut idle connections, which is often 60 s.
	pingEvery = 20 * time.Second
	// pongWithin is how long the answer to a ping may take. It must be long enough for a large message in between.
	pongWithin = 30 * time.Second
)

// Peer is the Conn of a WebSocket between two mcpx, or between mcpx and a device: it pings the other end, and ends the connection
// if no answer comes. Its owner must call Close or CloseWith.
type Peer struct {
	socket
	close sync.Once     // only the first CloseWith sends a close frame
	over  chan struct{} // closed by end
	end   func()
	loops sync.WaitGroup
	// silent is set if the connection was ended because a ping got no answer. It is how long mcpx has waited for the answer, in
	// nanoseconds.
	silent atomic.Int64
}

// PeerOptions are the settings of a [Peer].
type PeerOptions struct {
	// MaxMessage bounds a message that is read, in bytes.
	MaxMessage int64
	// Name says in errors who is at the other end.
	Name string
	// Ping is the time between two pings; 0 means pingEvery. Pong is how long the answer to a ping may take; 0 means pongWithin.
	Ping, Pong time.Duration
	// Subprotocol is the subprotocol that both ends must speak; empty means none.
	Subprotocol string
	// Received is called after each read from the connection with the number of bytes, which include pings and other
	// control frames. May be nil; only AcceptPeer uses it.
	Received func(bytes int)
}

// counted is the ResponseWriter of a request that opens a WebSocket. It gives the WebSocket a connection that reports how many
// bytes are read.
type counted struct {
	http.ResponseWriter
	countedConn
}

// Hijack implements [http.Hijacker]. The connection that it returns reports how many bytes are read.
func (w *counted) Hijack() (_ net.Conn, buffered *bufio.ReadWriter, err error) {
	w.Conn, buffered, err = http.NewResponseController(w.ResponseWriter).Hijack()
	return &w.countedConn, buffered, err
}

type countedConn struct {
	net.Conn
	received func(bytes int)
}

// Read implements [net.Conn]. It passes the number of bytes that it has read to the func received.
func (c *countedConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if c.received != nil {
		c.received(n)
	}
	return n, err
}

// AcceptPeer answers a request that opens a WebSocket. If it returns an error, it has answered the request already.
// Compression is off, because a small compressed frame could become a large message.
func AcceptPeer(w http.ResponseWriter, r *http.Request, o PeerOptions) (*Peer, error) {
	options := &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled}
	if o.Subprotocol != "" {
		options.Subprotocols = []string{o.Subprotocol}
	}
	hijacked := &counted{w, countedConn{received: o.Received}}
	conn, err := websocket.Accept(hijacked, r, options)
	if err != nil {
		return nil, fmt.Errorf("accepting the WebSocket: %w", err)
	}
	p := newPeer(conn, hijacked.Conn, o)
	if conn.Subprotocol() != o.Subprotocol {
		_ = p.CloseWith(ClosePolicy, "the subprotocol must be "+o.Subprotocol)
		return nil, errors.New("another subprotocol")
	}
	return p, nil
}

// RefusedError says with which HTTP status the other end refused to open a WebSocket.
type RefusedError struct {
	Status int
	Text   string // the beginning of the answer, as one line
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused with HTTP %d: %s", e.Status, e.Text)
}

// refusalBytes is how many bytes of the text of one refusal are read at most.
const refusalBytes = 500

// DialPeer opens a WebSocket to a URL. headers are sent with the request that opens it.
func DialPeer(ctx context.Context, url string, headers http.Header, o PeerOptions) (*Peer, error) {
	options := &websocket.DialOptions{HTTPClient: newHTTPClient(Remote{URL: url}), HTTPHeader: headers}
	if o.Subprotocol != "" {
		options.Subprotocols = []string{o.Subprotocol}
	}
	conn, raw, response, err := dial(ctx, url, options)
	if err != nil {
		if response != nil && response.StatusCode != http.StatusSwitchingProtocols {
			text, _ := io.ReadAll(io.LimitReader(response.Body, refusalBytes))
			return nil, &RefusedError{response.StatusCode, sanitize.Line(string(text), 0)}
		}
		return nil, fmt.Errorf("opening the WebSocket: %w", err)
	}
	return newPeer(conn, raw, o), nil
}

func newPeer(conn *websocket.Conn, raw net.Conn, o PeerOptions) *Peer {
	conn.SetReadLimit(-1) // Read has its own limit, which does not end the connection
	p := &Peer{socket: socket{conn, raw, o.MaxMessage, o.Name}, over: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.over) })
	every, within := cmp.Or(o.Ping, pingEvery), cmp.Or(o.Pong, pongWithin)
	p.loops.Go(func() { p.keepAlive(every, within) }) // ends when over is closed
	return p
}

// Over returns a channel that is closed when the connection has ended. If nothing else shows that the other end is gone, the channel
// is closed when a ping was not answered in time.
func (p *Peer) Over() <-chan struct{} { return p.over }

// keepAlive pings the other end until the connection is over.
func (p *Peer) keepAlive(every, within time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-p.over:
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), within)
		go func() { // ends with ctx
			select {
			case <-p.over:
				cancel()
			case <-ctx.Done():
			}
		}()
		err := p.conn.Ping(ctx)
		late := ctx.Err()
		cancel()
		if err != nil {
			p.lost(late, within)
			return
		}
	}
}

// Answers sends a ping and reports whether the other end answers within the time patience. If it does not, the connection ends.
// Another goroutine must be in Read meanwhile, which receives the answer.
func (p *Peer) Answers(patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if p.conn.Ping(ctx) == nil {
		return true
	}
	p.lost(ctx.Err(), patience)
	return false
}

// lost ends the connection after a ping that failed. late is the error of the ping's context. within is how long the answer was
// allowed to take.
func (p *Peer) lost(late error, within time.Duration) {
	if errors.Is(late, context.DeadlineExceeded) {
		p.silent.Store(int64(within))
	}
	p.end()
	p.cut()
}

// Read implements [Conn]. After an error the connection is over, except after a *wire.TooLargeError.
func (p *Peer) Read() ([]byte, error) {
	data, err := p.socket.Read()
	if _, large := errors.AsType[*wire.TooLargeError](err); err != nil && !large {
		p.end()
		if within := time.Duration(p.silent.Load()); within > 0 {
			err = fmt.Errorf("%s has not answered a ping within %v", p.peer, within)
		}
	}
	return data, err
}

// Write implements [Conn]. After an error the connection is over.
func (p *Peer) Write(messages ...[]byte) error {
	err := p.socket.Write(messages...)
	if err != nil {
		p.end()
	}
	return err
}

// CloseWith ends the connection with a code and a reason, which is cut to what a close frame holds. If it is called several
// times, the reason of the first call is sent. Each call returns when the connection has ended.
func (p *Peer) CloseWith(code int, reason string) error {
	p.close.Do(func() {
		p.end()
		p.closeWith(websocket.StatusCode(code), strings.ToValidUTF8(reason[:min(len(reason), 120)], ""))
	})
	p.loops.Wait()
	return nil
}

// Close implements [Conn]. It ends the connection with the code for a normal end.
func (p *Peer) Close() error { return p.CloseWith(int(websocket.StatusNormalClosure), "") }
