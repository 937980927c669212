// Package transport connects to MCP servers: processes, streamable HTTP, HTTP with server-sent events, WebSockets, servers in
// this process, and connections that the caller makes. A [Dialer] opens a [Link], which a session owns. A link ends with Close,
// or when the connection breaks ([Link.Life]). Links pass every byte on unchanged, and bound the size of messages. Their errors
// say whether a request was not sent ([ErrNotSent]), was refused ([StatusError.Refused], [ErrGone]), or may have been executed
// (any other error). After a loss, the caller must open a new link.
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

// Options describe how to reach a server. They must not change while a [Dialer] uses them.
type Options struct {
	// Name is the server's name, for errors and logs.
	Name string
	// Type is one of the transports above.
	Type string
	// Launch describes how to start a Stdio server.
	Launch Launch
	// Remote describes how to reach a server over the network.
	Remote Remote
	// Connect, if not nil, replaces Type, Launch and Remote: it connects to the server, within ctx. The link closes the
	// Conn.
	Connect func(ctx context.Context) (Conn, error)
	// Arrived, if not nil, is for a server that dials in: it waits until the server has dialled in, so that Connect can
	// connect. The wait is not part of the time for connecting. Arrived returns an error only if ctx has ended.
	Arrived func(ctx context.Context) error
	// Serve is an InProcess server. It reads and writes newline-delimited JSON-RPC.
	Serve func(ctx context.Context, in io.Reader, out io.Writer) error

	// MaxMessage bounds one message, in bytes; 0 means 64 MiB, and less than 64 KiB means 64 KiB. Links check it for messages from
	// the server; the session checks it for requests.
	MaxMessage int64
	// Secrets are removed from reasons and logs.
	Secrets *sanitize.Secrets
	// Trace, if not nil, is called with every message from and to the server, without the secrets. It must not
	// block.
	Trace func(received bool, message []byte)
	// Logger may be nil; then nothing is logged.
	Logger *slog.Logger
}

// Launch describes a child process.
type Launch struct {
	Command string
	Args    []string
	Env     []string // the whole environment, KEY=VALUE
	Cwd     string
	Umask   *int // nil means the umask of this process
	// Messages are separated by line ends or by Content-Length headers. ContentLength means that both sides use only
	// headers, NewlineOnly means that both sides use only line ends. If neither is set, mcpx understands both, and
	// writes line ends at first. If the server answers nothing, mcpx writes headers in the next attempt.
	ContentLength, NewlineOnly bool
	// Reaper ends the child if this process dies; may be nil.
	Reaper *proc.Reaper
}

// Remote describes a server that is reached over the network.
type Remote struct {
	// URL is the server's address. URLs, if not nil, are all its addresses: if one fails, the next one is tried.
	URL     string
	URLs    []string
	Headers map[string]string
	// Authorize, if not nil, returns a RoundTripper that adds credentials to the requests, and to the handshake of a WebSocket. An
	// error of this RoundTripper may have a method NotSent. If NotSent returns true, the request certainly was not executed.
	Authorize func(http.RoundTripper) http.RoundTripper
	// Transport replaces the HTTP transport in tests; nil means a new one.
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

// Dialer opens the links to one server, one after another. For the next attempt it remembers the address, and the
// framing (lines or Content-Length headers). Only one goroutine may call Dial; any may call [Dialer.CloseWithin].
type Dialer struct {
	Options
	address     string
	framing     wire.Framing // the framing for the next attempt
	heard       atomic.Int32 // 1 + the framing (a [wire.Framing]) of the server's last message over stdio; 0 if there was none
	closeWithin atomic.Int64 // in nanoseconds; 0 means the default times
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

// Address returns the address for the next attempt, for a remote server.
func (d *Dialer) Address() string { return d.address }

// NextAddress switches to the next address, if there are several.
func (d *Dialer) NextAddress() {
	if all := d.Remote.URLs; len(all) > 0 {
		d.address = all[(slices.Index(all, d.address)+1)%len(all)]
	}
}

// CloseWithin bounds the time for which Close of any link waits for the server: for the end of its process, or for its answer to
// the request that ends an HTTP session. 0 means the usual times.
func (d *Dialer) CloseWithin(within time.Duration) { d.closeWithin.Store(int64(within)) }

// grace returns how long a child process gets to end before it is killed.
func (d *Dialer) grace() proc.Grace {
	within := time.Duration(d.closeWithin.Load())
	return proc.Grace{EOF: within / 2, TERM: within / 3}
}

// traced passes a message without the secrets to Trace, if there is one.
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

// HostOf returns the host and port of an address, for use in texts: its other parts may contain secrets.
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
