// Package httpd is the HTTP server around package front. It decides who may connect and how long a client may take, and serves the
// paths about the state of the process, such as /readyz and /status.
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
	"sync/atomic"
	"syscall"
	"time"

	"mcpx/internal/base/netguard"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/request"
)

// Endpoint answers MCP requests at Options.Path and below. With Options.SSE, it also answers requests at /sse and /messages.
type Endpoint interface {
	// Serve answers a request, and returns the events of its messages. httpd ends these events after the response was sent.
	Serve(w http.ResponseWriter, r *http.Request) []*request.Event
	// EndStreams ends those requests that wait for events and not for a result. In a shutdown it is called when Options.Drain is
	// over.
	EndStreams()
	// EndCalls ends all other open requests with an error. In a shutdown it is called when Options.Drain and then Options.Grace are
	// over. In another program's HTTP server, the func stop that [Handler] returns calls it after EndStreams, without waiting.
	EndCalls()
}

// Page is the status page. EndStreams ends its event streams: [Serve] calls it when Options.Drain is over, and the func stop of
// [Handler] calls it too.
type Page interface {
	http.Handler
	EndStreams()
}

// Options are the settings of a server. If a duration is 0, it has its default.
type Options struct {
	Endpoint Endpoint
	// Path is the path of the endpoint; empty means /mcp.
	Path string
	// Identity finds out who sends a request; nil means that no credentials are needed.
	Identity *identity.Verifier
	// TLS has the certificates of the server; nil means no TLS.
	TLS *TLS
	// Limits bound the connections and the rate of requests; nil means no bounds, except for error answers.
	Limits *limits.Limits
	// AuthServer returns the handler of a path that needs no token: a path of the authorization server, or a page on which users
	// log in to servers. For other paths it returns nil. AuthServer itself may be nil.
	AuthServer func(path string) http.Handler
	// SSE makes the endpoint available also at /sse and /messages, for the HTTP+SSE transport of 2024-11-05.
	SSE bool
	// Grace is how long the shutdown waits for open requests; 0 means 4 s.
	Grace time.Duration
	// Drain is how long the server still accepts connections and serves requests after the shutdown has begun, while /readyz
	// already answers 503. In this time, load balancers notice the shutdown. Grace begins after Drain.
	Drain time.Duration
	// Ready returns two contents of /readyz. If auth is configured, only public is shown, because probes have no tokens. Otherwise
	// requests whose Host belongs to this machine get whole, and others get public.
	Ready func() (public Readiness, whole any)
	// Journal gets an event for each answered message and each HTTP error; may be nil.
	Journal *request.Journal
	// Status returns the content of /status. Only principals for which Admin returns true may read it; a nil Admin lets
	// everyone read it.
	Status func() any
	Admin  func(*caller.Principal) bool
	// Metrics serves /metrics; nil means that there is no such path. Only principals for which Measures returns true may read
	// it; a nil Measures lets everyone read it.
	Metrics  http.Handler
	Measures func(*caller.Principal) bool
	// Page serves /ui/, and / for browsers. If it is nil, / is plain text for browsers too.
	Page Page
	Routes
	// Version is the version of mcpx, shown at /.
	Version string
	Logger  *slog.Logger

	timeouts
}

// Routes are handlers for paths outside the endpoint. If one is nil, its path does not exist. Servers dial in at Dial, which serves
// /dial/, and at Agents, which serves AgentsPath. Servers serves /api/servers, Dialled serves /api/dialled, and each also the paths
// below. These two are only for principals for which Options.Admin returns true.
type Routes struct{ Dial, Agents, Servers, Dialled http.Handler }

// AgentsPath is the path below which tool servers dial in as in the older system that mcpx replaces. Such a server belongs to an
// agent, and its URL has the agent's token in the query.
const AgentsPath = "/mcp_endpoint/"

// timeouts bound the parts of a request. headerTimeout bounds the time to receive its header (0 means 10 s), bodyTimeout bounds
// the time to receive the whole request (0 means 1 min), and writeTimeout bounds the time to send the response (0 means 2 min).
// The endpoint extends writeTimeout for streams.
type timeouts struct {
	headerTimeout, bodyTimeout, writeTimeout time.Duration

	draining *atomic.Bool // whether Options.Drain has begun; made by handler
}

// Readiness is the public content of /readyz.
type Readiness struct {
	// Ready means that calls are possible, and that mcpx has tried to connect to every server, or has tried for long enough. While
	// the server drains, Ready is false.
	Ready bool `json:"ready"`
	// Degraded names the parts of mcpx that fail, such as audit.
	Degraded []string `json:"degraded,omitempty"`
}

// BindError is returned if mcpx refuses to listen on an address because other machines can reach it.
type BindError struct {
	Addr string
	// Profiles means that profiles should have been served there. Neither tokens nor --insecure allow this.
	Profiles bool
}

func (e *BindError) Error() string {
	return fmt.Sprintf("refusing to listen on %s: it is reachable from other machines, and there is no authentication", e.Addr)
}

func (e *BindError) Hint() string {
	if e.Profiles {
		return "bind to loopback, for example 127.0.0.1:6060; from another machine use ssh -L"
	}
	return "bind to loopback, for example 127.0.0.1:8080; or make a token, mcpx token new NAME; or, if something else restricts the access, --insecure"
}

// ListenError is returned if the operating system refuses an address, usually because another program listens there.
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

// Unwrap returns the cause of the error.
func (e *ListenError) Unwrap() error { return e.Err }

func (e *ListenError) Hint() string {
	if errors.Is(e.Err, syscall.EADDRNOTAVAIL) {
		return "this machine has no such address now; take one that it has"
	}
	host, port, err := net.SplitHostPort(e.Addr)
	if number, notNumber := strconv.Atoi(port); err == nil && notNumber == nil {
		return fmt.Sprintf("take another port, such as %s; if another mcpx has this one, http://%s/ shows it",
			net.JoinHostPort(host, strconv.Itoa(number%65535+1)), e.Addr)
	}
	return "take another port"
}

// Listen listens on addr, which is an address with a port, or only a port. For only a port, the host is 127.0.0.1. Unless anywhere
// is true, Listen accepts only loopback addresses, and returns a [BindError] for others.
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

// lastAnswers is how long the shutdown waits for the error responses of the open calls that it has ended.
const lastAnswers = 200 * time.Millisecond

// Serve serves requests until ctx ends. Then it goes on for Options.Drain. After that it accepts no more connections, and gives
// open requests Options.Grace to finish.
func Serve(ctx context.Context, listener net.Listener, o Options) error {
	o.Grace = cmp.Or(o.Grace, 4*time.Second)
	o.headerTimeout = cmp.Or(o.headerTimeout, 10*time.Second)
	o.bodyTimeout = cmp.Or(o.bodyTimeout, time.Minute)
	o.writeTimeout = cmp.Or(o.writeTimeout, 2*time.Minute)
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler:           o.handler(),
		ReadHeaderTimeout: o.headerTimeout,
		ReadTimeout:       max(o.bodyTimeout, o.headerTimeout), // applies until the body is read
		WriteTimeout:      o.writeTimeout,                      // the endpoint extends it for streams
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
		following.Go(func() { o.TLS.follow(ctx) }) // ends when Serve returns
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }() // ends when Shutdown or Close is called
	select {
	case err := <-served:
		return fmt.Errorf("serving HTTP: %w", err)
	case <-ctx.Done():
	}
	if err := o.drain(served); err != nil {
		return fmt.Errorf("serving HTTP: %w", err)
	}
	// EndStreams ends requests for which Shutdown would wait.
	o.Endpoint.EndStreams()
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

// drain waits for Options.Drain, while /readyz answers 503. If serving fails meanwhile, it returns the error at once.
func (o *Options) drain(served <-chan error) error {
	if o.Drain <= 0 {
		return nil
	}
	o.draining.Store(true)
	o.Logger.Info("draining: /readyz answers 503, and requests are still served", "for", o.Drain)
	over := time.NewTimer(o.Drain)
	defer over.Stop()
	select {
	case err := <-served:
		return err
	case <-over.C:
		return nil
	}
}

func (o *Options) path() string { return cmp.Or(o.Path, "/mcp") }

func (o *Options) endpoint(w http.ResponseWriter, r *http.Request) {
	answerOf(w).events = o.Endpoint.Serve(w, r)
}

// pages routes requests to the endpoint, to the pages about the process, and to [Routes].
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
	mux.HandleFunc("/register", o.register)
	mux.HandleFunc("GET /{$}", o.start)
	mux.HandleFunc("POST /{$}", func(w http.ResponseWriter, _ *http.Request) { // a client whose URL lacks the path
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the MCP endpoint is "+o.path()+", not /", http.StatusMethodNotAllowed)
	})
	if o.Page != nil {
		mux.Handle("/ui/", o.Page)
	}
	if o.Servers != nil {
		servers := only(o.Admin, o.Servers)
		mux.Handle("/api/servers", servers)
		mux.Handle("/api/servers/", servers)
	}
	if o.Dial != nil {
		mux.Handle("/dial/", o.Dial)
	}
	if o.Agents != nil {
		mux.Handle(AgentsPath, o.Agents)
	}
	if o.Dialled != nil {
		mux.Handle("/api/dialled", only(o.Admin, o.Dialled))
		mux.Handle("/api/dialled/", only(o.Admin, o.Dialled))
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", o.readyz)
	mux.Handle("GET /status", only(o.Admin, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteJSON(w, http.StatusOK, o.Status())
	})))
	if o.Metrics != nil {
		mux.Handle("GET /metrics", only(o.Measures, o.Metrics))
	}
	return mux
}

// readyz answers whether this process should get new requests.
func (o *Options) readyz(w http.ResponseWriter, r *http.Request) {
	public, info := o.Ready()
	// Without auth, a request gets the details if its Host belongs to this machine. So a web page that reaches mcpx by DNS
	// rebinding does not get them. With auth nobody does, because probes have no tokens.
	if o.Identity.Options() != nil || !o.ownHost(r) {
		info = public
	}
	status := http.StatusOK
	if o.draining.Load() {
		public.Ready, info = false, Readiness{Degraded: append(public.Degraded, "draining")}
	}
	if !public.Ready {
		status = http.StatusServiceUnavailable
	}
	WriteJSON(w, status, info)
}

// only serves requests of principals for which allowed returns true. If allowed is nil, it serves everyone.
func only(allowed func(*caller.Principal) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if allowed != nil && !allowed(caller.From(r.Context())) {
			http.Error(w, "this token may not see this", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// start serves the status page to browsers, and a text to other programs. The text says nothing about the config.
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
	token := ""
	if o.Identity.Options() != nil {
		token = "\nWith a token add --header \"Authorization: Bearer TOKEN\", for curl -H. /status and /metrics are for admins.\n"
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
%[4]s`, o.Version, scheme+"://"+r.Host, o.path(), token) // guard has checked r.Host, so it can be shown
}

// WriteJSON answers with JSON.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
