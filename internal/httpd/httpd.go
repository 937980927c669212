// Package httpd is what stands around front on HTTP: who may connect, how long they
// may take, and whether the process is well.
package httpd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// Endpoint answers MCP at /mcp.
type Endpoint interface {
	http.Handler
	// EndStreams ends, at the beginning of the end, the requests that wait for
	// events rather than for a result.
	EndStreams()
	// EndCalls ends those that are still open after Options.Grace, each in an error.
	EndCalls()
}

// Options are what a server needs. Times may be zero.
type Options struct {
	Endpoint Endpoint
	// Grace bounds the wait for open requests at the end; 0 = 4 s.
	Grace time.Duration
	// Ready reports whether the catalogue is loaded, and what /readyz says.
	Ready func() (ready bool, info any)
	// Status is what /status says.
	Status func() any
	// Version is the mcpx that the page at / names.
	Version string
	Logger  *slog.Logger

	// headerTimeout bounds how long a client may take to send the header of a
	// request, 0 = 10 s, and bodyTimeout the whole of it, 0 = 1 min. writeTimeout
	// bounds how long it may take to read what the endpoint does not bound itself;
	// 0 = 2 min.
	headerTimeout, bodyTimeout, writeTimeout time.Duration
}

// BindError is an address that is refused because it is not safe to serve.
type BindError struct{ Addr string }

func (e *BindError) Error() string {
	return fmt.Sprintf("refusing to listen on %s: it is reachable from other machines, and there is no authentication", e.Addr)
}

// Hint says what to do instead.
func (e *BindError) Hint() string {
	return "bind to loopback, for example 127.0.0.1:8080"
}

// ListenError is an address that cannot be had, mostly because another program has
// it.
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

// Hint says what to do about it.
func (e *ListenError) Hint() string {
	host, port, err := net.SplitHostPort(e.Addr)
	if number, notNumber := strconv.Atoi(port); err == nil && notNumber == nil {
		return fmt.Sprintf("take another port, such as %s; or another mcpx is there already: http://%s/ says so",
			net.JoinHostPort(host, strconv.Itoa(number%65535+1)), e.Addr)
	}
	return "take another port"
}

// Listen opens the address; a port alone is one of 127.0.0.1. Anything but
// loopback is refused.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	if addr != "" && strings.Trim(addr, "0123456789") == "" {
		addr = net.JoinHostPort("127.0.0.1", addr)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("reading the address %q: %w", addr, err)
	}
	if !isLoopback(host) {
		return nil, &BindError{Addr: addr}
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, &ListenError{Addr: net.JoinHostPort(host, port), Err: err}
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		listener.Close()
		return nil, &BindError{Addr: addr}
	}
	return listener, nil
}

// lastAnswers is how long the errors of ended calls may take to be written.
const lastAnswers = 200 * time.Millisecond

// Serve answers on the listener until ctx ends, then lets open requests finish
// for at most Options.Grace.
func Serve(ctx context.Context, listener net.Listener, o Options) error {
	o.Grace = cmp.Or(o.Grace, 4*time.Second)
	o.headerTimeout = cmp.Or(o.headerTimeout, 10*time.Second)
	o.bodyTimeout = cmp.Or(o.bodyTimeout, time.Minute)
	o.writeTimeout = cmp.Or(o.writeTimeout, 2*time.Minute)
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler:           &guard{o.pages(), o.Logger},
		ReadHeaderTimeout: o.headerTimeout,
		ReadTimeout:       max(o.bodyTimeout, o.headerTimeout), // net/http takes it back behind the body
		WriteTimeout:      o.writeTimeout,                      // the endpoint extends it
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }() // ends with Shutdown or Close
	select {
	case err := <-served:
		return fmt.Errorf("serving HTTP: %w", err)
	case <-ctx.Done():
	}
	o.Endpoint.EndStreams() // they would hold Shutdown up
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

// pages are the endpoint and what says how the process is.
func (o *Options) pages() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", o.Endpoint)
	mux.HandleFunc("GET /{$}", o.start)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		ready, info := o.Ready()
		status := http.StatusOK
		if !ready {
			status = http.StatusServiceUnavailable
		}
		writeJSON(w, status, info)
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, o.Status())
	})
	return mux
}

// start says to people in a browser what they have found. It shows nothing of the
// configuration.
func (o *Options) start(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	fmt.Fprintf(w, `This is mcpx %[1]s: one MCP server in front of many.

It is for MCP clients. Give yours this address:

    http://%[2]s/mcp

For a look with a terminal:

    claude mcp add --transport http mcpx http://%[2]s/mcp
    curl http://%[2]s/status      servers, tools, tokens saved
    curl http://%[2]s/readyz      whether every server has been tried
    curl http://%[2]s/healthz     whether mcpx is up
`, o.Version, r.Host) // which is a name of this machine
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
