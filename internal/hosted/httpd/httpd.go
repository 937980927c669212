// Package httpd is the HTTP server around package front: it decides who may connect and how long a client may take,
// and serves the pages about the state of the process.
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

// Endpoint answers MCP at Options.Path and below.
type Endpoint interface {
	// Serve answers a request, and returns the events of its messages. httpd ends them once the answer is sent.
	Serve(w http.ResponseWriter, r *http.Request) []*request.Event
	// EndStreams ends the requests that wait for events instead of a result. It is called when the shutdown begins.
	EndStreams()
	// EndCalls ends all other open requests with an error. It is called after Options.Grace.
	EndCalls()
}

// Page is the status page. EndStreams is called when the shutdown begins.
type Page interface {
	http.Handler
	EndStreams()
}

// Options are the settings of a server. A zero time means its default.
type Options struct {
	Endpoint Endpoint
	// Path is the path of the endpoint; empty = /mcp.
	Path string
	// Identity says who may connect; nil = everyone who reaches the listener.
	Identity *identity.Verifier
	// TLS has the certificates of the server; nil: no TLS.
	TLS *TLS
	// Limits bound the connections and the rate of requests; nil = no bounds.
	Limits *limits.Limits
	// AuthServer returns the handler for a path of an authorization server, which needs no token; nil for other
	// paths. The function is nil if there is none.
	AuthServer func(path string) http.Handler
	// SSE serves the endpoint also at /sse and /messages, for the HTTP+SSE transport of 2024-11-05.
	SSE bool
	// Grace bounds how long the shutdown waits for open requests; 0 = 4 s.
	Grace time.Duration
	// Ready returns the content of /readyz: whole, or public if auth is configured, as probes have no tokens.
	Ready func() (public Readiness, whole any)
	// Journal gets an event for each answered message and each HTTP error. May be nil.
	Journal *request.Journal
	// Status returns the content of /status, for principals that Admin admits. A nil Admin admits everyone.
	Status func() any
	Admin  func(*caller.Principal) bool
	// Metrics serves /metrics to principals that Measures admits; nil = no such path. A nil Measures admits everyone.
	Metrics  http.Handler
	Measures func(*caller.Principal) bool
	// Page serves / to browsers, and /ui/; nil = / is plain text.
	Page Page
	// Servers serves /api/servers to principals that Admin admits; nil = no such path.
	Servers http.Handler
	// Version is the version of mcpx, shown at /.
	Version string
	Logger  *slog.Logger

	// headerTimeout bounds the time to receive a request's header, 0 = 10 s; bodyTimeout the whole request, 0 = 1
	// min; writeTimeout the time to send the response, 0 = 2 min, which the endpoint extends for streams.
	headerTimeout, bodyTimeout, writeTimeout time.Duration
}

// Readiness is the public content of /readyz.
type Readiness struct {
	// Ready means that every server was tried and that calls are possible.
	Ready bool `json:"ready"`
	// Degraded names the parts that fail, such as audit.
	Degraded []string `json:"degraded,omitempty"`
}

// BindError is the refusal to listen on an address that is reachable from other machines.
type BindError struct{ Addr string }

func (e *BindError) Error() string {
	return fmt.Sprintf("refusing to listen on %s: it is reachable from other machines, and there is no authentication", e.Addr)
}

func (e *BindError) Hint() string {
	return "bind to loopback, for example 127.0.0.1:8080; or make a token, mcpx token new NAME; or, if something else restricts the access, --insecure"
}

// ListenError says that the system refuses an address, mostly because another program listens there.
type ListenError struct {
	Addr string
	Err  error
}

func (e *ListenError) Error() string {
	err := e.Err
	if system, ok := errors.AsType[*os.SyscallError](err); ok {
		err = system.Err
	}
	return fmt.Sprintf("listening on %s: %v", e.Addr, err)
}

// Unwrap returns the cause.
func (e *ListenError) Unwrap() error { return e.Err }

func (e *ListenError) Hint() string {
	host, port, err := net.SplitHostPort(e.Addr)
	if number, notNumber := strconv.Atoi(port); err == nil && notNumber == nil {
		return fmt.Sprintf("take another port, such as %s; if another mcpx has this one, http://%s/ shows it",
			net.JoinHostPort(host, strconv.Itoa(number%65535+1)), e.Addr)
	}
	return "take another port"
}

// Listen listens on an address, or on a port of 127.0.0.1. Unless anywhere is true, it accepts only loopback
// addresses.
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

// OnLoopback reports whether a listener is reachable from this machine only.
func OnLoopback(listener net.Listener) bool {
	tcp, ok := listener.Addr().(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// lastAnswers bounds the time to write the errors of the calls that the shutdown ended.
const lastAnswers = 200 * time.Millisecond

// Serve answers requests until ctx ends, then lets open requests finish for at most Options.Grace.
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
		ReadTimeout:       max(o.bodyTimeout, o.headerTimeout), // net/http lifts it once the body is read
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

// path is the path of the endpoint.
func (o *Options) path() string { return cmp.Or(o.Path, "/mcp") }

func (o *Options) endpoint(w http.ResponseWriter, r *http.Request) {
	answerOf(w).events = o.Endpoint.Serve(w, r)
}

// pages routes to the endpoint and the pages about the process.
func (o *Options) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(o.path(), o.endpoint)
	mux.HandleFunc(o.path()+"/", o.endpoint)
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
		if o.Identity.Options() != nil { // probes have no token, and the details need one
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

// only serves principals that may admits; a nil may admits everyone.
func only(may func(*caller.Principal) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if may != nil && !may(caller.From(r.Context())) {
			http.Error(w, "this token may not see this", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// start serves the page to a browser, and a text to other programs. The text does not reveal the configuration.
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

    %[2]s%[3]s

For a look with a terminal:

    claude mcp add --transport http mcpx %[2]s%[3]s
    curl %[2]s/status      servers, tools, tokens saved
    curl %[2]s/metrics     the same for Prometheus, and more
    curl %[2]s/readyz      whether every server has been tried
    curl %[2]s/healthz     whether mcpx is up
`, o.Version, scheme+"://"+r.Host, o.path()) // guard has checked Host
}

// WriteJSON answers with JSON.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
