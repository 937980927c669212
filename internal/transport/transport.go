// Package transport is the ways to an MCP server: processes, streamable HTTP, HTTP with server-sent events, WebSockets,
// servers in this process, and connections that the caller makes. A [Dialer] opens a [Link], whose session owns it: the
// link ends with Close, or when its way breaks ([Life]). Links keep every byte, bound every message, and say in their
// errors whether a request was sent ([ErrNotSent]), refused ([StatusError], [ErrGone]), or may have been executed (any
// other). They know nothing of who opens a fresh one after a loss.
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

// Options say how a server is reached. Nothing of them may be changed while a [Dialer] uses them.
type Options struct {
	// Name is the server's, for texts.
	Name string
	// Type is one of the transports above.
	Type string
	// Launch starts a Stdio server.
	Launch Launch
	// Remote reaches a server over the network.
	Remote Remote
	// Connect, where not nil, is the way to the server in place of all that. It ends with ctx; the link closes what it
	// returns.
	Connect func(ctx context.Context) (Conn, error)
	// Serve is an InProcess server: newline-delimited JSON-RPC on in and out.
	Serve func(ctx context.Context, in io.Reader, out io.Writer) error

	// MaxMessage bounds one message, both ways, in bytes; 0 = 64 MiB.
	MaxMessage int64
	// Secrets are struck out of reasons and logs.
	Secrets *sanitize.Secrets
	// Trace, where not nil, gets every message from and to the server, without the secrets. It must not block.
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
	// ContentLength pins the framing to Content-Length headers, NewlineOnly to lines, both ways. With neither, lines are
	// tried first, headers after an attempt in which nothing was answered, and what the server sends is read in
	// whichever framing it has.
	ContentLength, NewlineOnly bool
	// Reaper ends the child if this process dies; may be nil.
	Reaper *proc.Reaper
}

// Remote reaches a server over the network.
type Remote struct {
	// URL is the server's address. URLs, where not nil, are all of them: an attempt goes to URL first, and after a
	// failure to the next.
	URL     string
	URLs    []string
	Headers map[string]string
	// Authorize, where not nil, puts credentials on the requests, of a WebSocket on its handshake. An error of it
	// that has NotSent() true says that the request surely was not executed.
	Authorize func(http.RoundTripper) http.RoundTripper
	// Transport replaces the HTTP transport (tests); nil = one of its own.
	Transport http.RoundTripper
}

// WithDefaults returns the options with what is left out filled in.
func (o Options) WithDefaults() Options {
	o.MaxMessage = max(cmp.Or(max(o.MaxMessage, 0), 64<<20), 64<<10)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Dialer opens the links to one server, one after another. It remembers at which of its addresses, and in which framing,
// the next attempt is made. One goroutine dials; [Dialer.CloseWithin] may be called by any.
type Dialer struct {
	Options
	address     string
	framing     wire.Framing // of the next attempt
	heard       heard
	closeWithin atomic.Int64 // in nanoseconds; 0 = the defaults
}

// NewDialer makes a dialer. It starts nothing.
func NewDialer(o Options) *Dialer {
	d := &Dialer{Options: o.WithDefaults(), address: o.Remote.URL}
	if o.Launch.ContentLength {
		d.framing = wire.ContentLength
	}
	return d
}

// Dial makes one attempt, within ctx. The link speaks once it is started, and its owner closes it.
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

// Address is where the next attempt to reach a remote server goes.
func (d *Dialer) Address() string { return d.address }

// NextAddress has the next attempt go to the next address of a server that has several.
func (d *Dialer) NextAddress() {
	if all := d.Remote.URLs; len(all) > 0 {
		d.address = all[(slices.Index(all, d.address)+1)%len(all)]
	}
}

// CloseWithin bounds the end of links that are open, and of later ones; 0 = as long as each needs.
func (d *Dialer) CloseWithin(within time.Duration) { d.closeWithin.Store(int64(within)) }

// grace is how a child is ended.
func (d *Dialer) grace() proc.Grace {
	within := time.Duration(d.closeWithin.Load())
	return proc.Grace{EOF: within / 2, TERM: within / 3}
}

// traced hands a message to Trace.
func (d *Dialer) traced(received bool, message []byte) {
	if d.Trace != nil {
		d.Trace(received, []byte(d.Secrets.Strike(string(message))))
	}
}

// dialGiven opens the connection that [Options.Connect] makes.
func (d *Dialer) dialGiven(ctx context.Context) (Link, error) {
	conn, err := d.Connect(ctx)
	if err != nil {
		return nil, errors.New(d.Secrets.Line(err.Error(), 500))
	}
	return newStreamLink(d).use(conn, nil), nil
}

// HostOf is the host of an address with its port, for texts: other parts may hold secrets.
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
