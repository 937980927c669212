package httpd

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
)

// guard checks what comes before the endpoint sees it.
type guard struct {
	options Options
	log     *slog.Logger
}

func (g *guard) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", http.HandlerFunc(g.mcp))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", g.ready)
	if g.options.Status != nil {
		mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, http.StatusOK, g.options.Status())
		})
	}
	return g.recovered(g.local(mux))
}

func (g *guard) ready(w http.ResponseWriter, _ *http.Request) {
	if g.options.Ready == nil {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
		return
	}
	ready, info := g.options.Ready()
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, info)
}

// recovered answers 500 instead of dropping the connection.
func (g *guard) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if what := recover(); what != nil {
				if what == http.ErrAbortHandler {
					panic(what)
				}
				g.log.Error("panic in a request", "path", r.URL.Path, "panic", what, "stack", string(debug.Stack()))
				http.Error(w, "internal error", http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// local lets in only what names this machine: a page in a browser that was led
// here by DNS names another host, and every page sends its origin.
func (g *guard) local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !localHost(r.Host):
			g.log.Warn("request refused", "reason", "host", "host", r.Host, "remote", r.RemoteAddr)
			http.Error(w, "this Host is not served here", http.StatusForbidden)
		case !localOrigins(r.Header.Values("Origin")):
			g.log.Warn("request refused", "reason", "origin", "origin", r.Header.Values("Origin"), "remote", r.RemoteAddr)
			http.Error(w, "this Origin may not connect", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func localHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return isLoopback(strings.ToLower(strings.Trim(host, "[]")))
}

func localOrigins(origins []string) bool {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || !localHost(u.Host) {
			return false
		}
	}
	return true
}

// mcp passes a request to the endpoint, with its body read.
func (g *guard) mcp(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		body, ok := g.body(w, r)
		if !ok {
			return
		}
		r.Body = body
	}
	g.options.Endpoint.ServeHTTP(w, r)
}

// inMemory is a body that has been read.
type inMemory struct{ bytes.Buffer }

// Close implements io.Closer.
func (*inMemory) Close() error { return nil }

// body reads a body. What is wrong with it is said as text: the id of the request,
// which a JSON-RPC error would need, is not known.
func (g *guard) body(w http.ResponseWriter, r *http.Request) (*inMemory, bool) {
	const tooLarge = "the body is too large"
	if r.ContentLength > g.options.MaxBody {
		w.Header().Set("Connection", "close")
		http.Error(w, tooLarge, http.StatusRequestEntityTooLarge)
		return nil, false
	}
	body := &inMemory{}
	if r.ContentLength > 0 {
		body.Grow(int(min(r.ContentLength, 1<<20)) + bytes.MinRead)
	}
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, g.options.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(w, tooLarge, http.StatusRequestEntityTooLarge)
	case err != nil:
		http.Error(w, "the body could not be read", http.StatusBadRequest)
	}
	return body, err == nil
}
