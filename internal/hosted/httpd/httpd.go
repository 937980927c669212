// Package httpd is the HTTP server around front: it decides who may connect and how
// long a client may take, and shows the state of the process.
package httpd

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/netguard"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/request"
)

// Endpoint answers MCP at /mcp and below.
type Endpoint interface {
	// Serve answers a request, and returns the events of the messages in it. They are ended when the client has the answer.
	Serve(w http.ResponseWriter, r *http.Request) []*request.Event
	// EndStreams ends the requests that wait for events rather than a result. Serve
	// calls it when the shutdown begins.
	EndStreams()
	// EndCalls ends all other open requests, each with an error. Serve calls it after
	// Options.Grace.
	EndCalls()
}

// Page is the status page. Serve calls EndStreams when the shutdown begins.
type Page interface {
	http.Handler
	EndStreams()
}

// Options are the settings of a server. Times may be zero.
type Options struct {
	Endpoint Endpoint
	// Identity says who may connect; nil: everybody who reaches the listener.
	Identity *identity.Verifier
	// TLS has the certificates of the server; nil: no TLS.
	TLS *TLS
	// Limits say how many connections there may be, and what is a flood; nil: nothing.
	Limits *limits.Limits
	// AuthServer returns what serves a path of an authorization server, which clients reach before they have a token; nil
	// for other paths. A nil AuthServer: there is none.
	AuthServer func(path string) http.Handler
	// SSE: the endpoint serves /sse and /messages too, of the HTTP+SSE transport of 2024-11-05.
	SSE bool
	// Grace bounds the wait for open requests in the shutdown; 0 = 4 s.
	Grace time.Duration
	// Ready makes the content of /readyz: whole or, where auth is configured, public, as probes
	// have no tokens.
	Ready func() (public Readiness, whole any)
	// Journal gets an event for each message that was answered, and each request that got an HTTP error. May be nil.
	Journal *request.Journal
	// Status makes the content of /status, for principals that Admin admits. A nil Admin admits
	// everybody.
	Status func() any
	Admin  func(*caller.Principal) bool
	// Metrics serves /metrics to principals that Measures admits; nil: there is no such path. A
	// nil Measures admits everybody.
	Metrics  http.Handler
	Measures func(*caller.Principal) bool
	// Page serves / to browsers, and /ui/; nil = / is a text.
	Page Page
	// Servers serves /api/servers to principals that Admin admits; nil: there is no such path.
	Servers http.Handler
	// Version is the version of mcpx in the text at /.
	Version string
	Logger  *slog.Logger

	// headerTimeout bounds how long a client may take to send the header of a
	// request, 0 = 10 s, and bodyTimeout the whole request, 0 = 1 min. writeTimeout
	// bounds how long it may take to read the response, 0 = 2 min; the endpoint
	// extends it for streams.
	headerTimeout, bodyTimeout, writeTimeout time.Duration
}

// Readiness says whether mcpx can do its work.
type Readiness struct {
	// Ready means that every server was tried, and that nothing refuses all calls.
	Ready bool `json:"ready"`
	// Degraded names the parts that do not work, such as audit.
	Degraded []string `json:"degraded,omitempty"`
}

// BindError is the refusal of an address that is not safe to serve.
type BindError struct{ Addr string }

func (e *BindError) Error() string {
	return fmt.Sprintf("refusing to listen on %s: it is reachable from other machines, and there is no authentication", e.Addr)
}

// Hint is advice for the user.
func (e *BindError) Hint() string {
	return "bind to loopback, for example 127.0.0.1:8080; or make a token, mcpx token new NAME; or, if something else decides who gets through, --insecure"
}

// ListenError is an address that the system refuses, mostly because another program
// listens there.
type ListenError struct {
	Addr string
	Err  error
}

func (e *ListenError) Error() string {
	var system *os.SyscallError
	if errors.As(e.Err, &system) {
		return fmt.Sprintf("listening on %s: %v", e.Addr, system.Err)
	}
	return fmt.Sprintf("listening on %s: %v", e.Addr, e.Err)
}

// Unwrap returns the cause.
func (e *ListenError) Unwrap() error { return e.Err }

// Hint is advice for the user.
func (e *ListenError) Hint() string {
	host, port, err := net.SplitHostPort(e.Addr)
	if number, notNumber := strconv.Atoi(port); err == nil && notNumber == nil {
		return fmt.Sprintf("take another port, such as %s; or another mcpx is there already: http://%s/ says so",
			net.JoinHostPort(host, strconv.Itoa(number%65535+1)), e.Addr)
	}
	return "take another port"
}

// Listen listens on an address, or on a port of 127.0.0.1. Unless anywhere is true, it
// refuses anything but loopback.
func Listen(ctx context.Context, addr string, anywhere bool) (net.Listener, error) {
	if addr != "" && strings.Trim(addr, "0123456789") == "" {
		addr = net.JoinHostPort("127.0.0.1", addr)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("reading the address %q: %w", addr, err)
	}
	if !anywhere && !netguard.Loopback(host) {
		return nil, &BindError{Addr: addr}
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, &ListenError{Addr: net.JoinHostPort(host, port), Err: err}
	}
	if !anywhere && !OnLoopback(listener) {
		listener.Close()
		return nil, &BindError{Addr: addr}
	}
	return listener, nil
}

// OnLoopback reports whether only this machine reaches a listener.
func OnLoopback(listener net.Listener) bool {
	tcp, ok := listener.Addr().(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// lastAnswers bounds the time to write the errors of ended calls.
const lastAnswers = 200 * time.Millisecond

// Serve answers on the listener until ctx ends, then lets open requests finish
// for at most Options.Grace.
func Serve(ctx context.Context, listener net.Listener, o Options) error {
	if o.Identity == nil {
		o.Identity = &identity.Verifier{}
	}
	o.Grace = cmp.Or(o.Grace, 4*time.Second)
	o.headerTimeout = cmp.Or(o.headerTimeout, 10*time.Second)
	o.bodyTimeout = cmp.Or(o.bodyTimeout, time.Minute)
	o.writeTimeout = cmp.Or(o.writeTimeout, 2*time.Minute)
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler:           o.handler(),
		ReadHeaderTimeout: o.headerTimeout,
		ReadTimeout:       max(o.bodyTimeout, o.headerTimeout), // net/http lifts it after the body
		WriteTimeout:      o.writeTimeout,                      // the endpoint extends it
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       withConnection,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	listener = o.connections(listener)
	if o.TLS != nil {
		listener = tls.NewListener(listener, o.TLS.config())
		var following sync.WaitGroup
		defer following.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		following.Go(func() { o.TLS.follow(ctx) }) // ends with Serve
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }() // ends with Shutdown or Close
	select {
	case err := <-served:
		return fmt.Errorf("serving HTTP: %w", err)
	case <-ctx.Done():
	}
	o.Endpoint.EndStreams() // Shutdown would wait for them
	if o.Page != nil {
		o.Page.EndStreams()
	}
	bounded, stop := context.WithTimeout(context.WithoutCancel(ctx), o.Grace)
	defer stop()
	err := server.Shutdown(bounded)
	if errors.Is(err, context.DeadlineExceeded) {
		o.Endpoint.EndCalls()
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
		defer stop()
		_ = server.Shutdown(last)
		cancel()
		err = server.Close()
	}
	<-served
	return err
}

// endpoint has the endpoint answer a request.
func (o *Options) endpoint(w http.ResponseWriter, r *http.Request) {
	answerOf(w).events = o.Endpoint.Serve(w, r)
}

// pages routes the endpoint and the pages about the process.
func (o *Options) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", o.endpoint)
	mux.HandleFunc("/mcp/", o.endpoint)
	if o.SSE {
		mux.HandleFunc("/sse", o.endpoint)
		mux.HandleFunc("/messages", o.endpoint)
	}
	mux.HandleFunc(wellKnown, o.metadata)
	mux.HandleFunc(wellKnown+"/", o.metadata)
	mux.HandleFunc("/register", register)
	mux.HandleFunc("GET /{$}", o.start)
	if o.Page != nil {
		mux.Handle("/ui/", o.Page)
	}
	if o.Servers != nil {
		servers := only(o.Admin, o.Servers)
		mux.Handle("/api/servers", servers)
		mux.Handle("/api/servers/", servers)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		public, info := o.Ready()
		status := http.StatusOK
		if !public.Ready {
			status = http.StatusServiceUnavailable
		}
		if o.Identity.Options() != nil { // probes have no token, and the counts are not for everybody
			info = public
		}
		WriteJSON(w, status, info)
	})
	mux.Handle("GET /status", only(o.Admin, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteJSON(w, http.StatusOK, o.Status())
	})))
	if o.Metrics != nil {
		mux.Handle("GET /metrics", only(o.Measures, o.Metrics))
	}
	return mux
}

// only serves principals that may admits; a nil may admits everybody.
func only(may func(*caller.Principal) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if may != nil && !may(caller.From(r.Context())) {
			http.Error(w, "this token may not see this", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// start serves the page to a browser, and a text to other programs. The text reveals nothing of
// the configuration.
func (o *Options) start(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	if o.Page != nil && strings.Contains(r.Header.Get("Accept"), "text/html") {
		o.Page.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	fmt.Fprintf(w, `This is mcpx %[1]s: one MCP server in front of many.

It is for MCP clients. Give yours this address:

    %[2]s/mcp

For a look with a terminal:

    claude mcp add --transport http mcpx %[2]s/mcp
    curl %[2]s/status      servers, tools, tokens saved
    curl %[2]s/metrics     the same for Prometheus, and more
    curl %[2]s/readyz      whether every server has been tried
    curl %[2]s/healthz     whether mcpx is up
`, o.Version, scheme+"://"+r.Host) // guard has checked Host
}

// WriteJSON answers with JSON.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
