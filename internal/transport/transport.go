// Package transport connects to MCP servers: processes, streamable HTTP, HTTP with server-sent events, WebSockets,
// servers in this process, and connections that the caller makes. A [Dialer] opens a [Link], which a session owns: it
// ends with Close, or when the connection breaks ([Link.Life]). Links keep every byte, bound every message, and their
// errors tell whether a request was not sent ([ErrNotSent]), was refused ([StatusError], [ErrGone]), or may have been
// executed (any other). Opening a new link after a loss is the caller's task.
package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"mcpx/internal/base/proc"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
)

// The transports of a server.
const (
	Stdio     = "stdio"
	HTTP      = "http"
	SSE       = "sse"
	WebSocket = "websocket"
	InProcess = "in-process"
)

// Options say how to reach a server. They must not change while a [Dialer] uses them.
type Options struct {
	// Name is the server's name, for errors and logs.
	Name string
	// Type is one of the transports above.
	Type string
	// Launch starts a Stdio server.
	Launch Launch
	// Remote reaches a server over the network.
	Remote Remote
	// Connect, if not nil, replaces Type, Launch and Remote: it connects to the server, within ctx. The link closes the
	// Conn.
	Connect func(ctx context.Context) (Conn, error)
	// Serve is an InProcess server. It reads and writes newline-delimited JSON-RPC.
	Serve func(ctx context.Context, in io.Reader, out io.Writer) error

	// MaxMessage bounds one message, both ways, in bytes; 0 = 64 MiB.
	MaxMessage int64
	// Secrets are removed from reasons and logs.
	Secrets *sanitize.Secrets
	// Trace, if not nil, gets every message from and to the server, without the secrets. It must not block.
	Trace func(received bool, message []byte)
	// Logger may be nil (discard).
	Logger *slog.Logger
}

// Launch starts a child process.
type Launch struct {
	Command string
	Args    []string
	Env     []string // the whole environment, KEY=VALUE
	Cwd     string
	// ContentLength fixes the framing to Content-Length headers, NewlineOnly to lines, in both directions. With neither,
	// mcpx writes lines, or headers after an attempt without any answer, and reads both.
	ContentLength, NewlineOnly bool
	// Reaper ends the child if this process dies; may be nil.
	Reaper *proc.Reaper
}

// Remote reaches a server over the network.
type Remote struct {
	// URL is the server's address. URLs, if not nil, are all its addresses: after a failure the next one is tried.
	URL     string
	URLs    []string
	Headers map[string]string
	// Authorize, if not nil, adds credentials to the requests, and to the handshake of a WebSocket. If its error has a
	// method NotSent that returns true, the request surely was not executed.
	Authorize func(http.RoundTripper) http.RoundTripper
	// Transport replaces the HTTP transport, for tests; nil = a new one.
	Transport http.RoundTripper
}

// WithDefaults returns the options with defaults filled in.
func (o Options) WithDefaults() Options {
	o.MaxMessage = max(cmp.Or(max(o.MaxMessage, 0), 64<<20), 64<<10)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Dialer opens the links to one server, one after another. It remembers the address and the framing for the next attempt.
// Only one goroutine may dial; [Dialer.CloseWithin] may be called by any.
type Dialer struct {
	Options
	address     string
	framing     wire.Framing // of the next attempt
	heard       atomic.Int32 // 1 + the framing of the server's last message over stdio; 0 = there was none
	closeWithin atomic.Int64 // in nanoseconds; 0 = the defaults
}

// NewDialer returns a dialer. It starts nothing.
func NewDialer(o Options) *Dialer {
	d := &Dialer{Options: o.WithDefaults(), address: o.Remote.URL}
	if o.Launch.ContentLength {
		d.framing = wire.ContentLength
	}
	return d
}

// Dial opens a link, within ctx. The caller must start it, and close it.
func (d *Dialer) Dial(ctx context.Context) (Link, error) {
	if d.Connect != nil {
		return d.dialGiven(ctx)
	}
	switch d.Type {
	case Stdio:
		return d.dialProcess()
	case InProcess:
		return d.dialInProcess(), nil
	case HTTP:
		return newHTTPLink(d), nil
	case SSE:
		return d.DialSSE(ctx)
	case WebSocket:
		return d.dialWebSocket(ctx)
	}
	return nil, fmt.Errorf("transport %q is not supported", d.Type)
}

// Address is the address of the next attempt, for a remote server.
func (d *Dialer) Address() string { return d.address }

// NextAddress moves on to the next address, if there are several.
func (d *Dialer) NextAddress() {
	if all := d.Remote.URLs; len(all) > 0 {
		d.address = all[(slices.Index(all, d.address)+1)%len(all)]
	}
}

// CloseWithin bounds the time that Close of any link takes; 0 = as long as needed.
func (d *Dialer) CloseWithin(within time.Duration) { d.closeWithin.Store(int64(within)) }

// grace says how to end a child.
func (d *Dialer) grace() proc.Grace {
	within := time.Duration(d.closeWithin.Load())
	return proc.Grace{EOF: within / 2, TERM: within / 3}
}

// traced passes a message to Trace.
func (d *Dialer) traced(received bool, message []byte) {
	if d.Trace != nil {
		d.Trace(received, []byte(d.Secrets.Strike(string(message))))
	}
}

// dialGiven opens a link over [Options.Connect].
func (d *Dialer) dialGiven(ctx context.Context) (Link, error) {
	conn, err := d.Connect(ctx)
	if err != nil {
		return nil, errors.New(d.Secrets.Line(err.Error(), 500))
	}
	return newStreamLink(d).use(conn, nil), nil
}

// HostOf returns the host and port of an address, for texts: its other parts may hold secrets.
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
