package httpd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"mcpx/internal/front"
	"mcpx/internal/wire"
)

// bodyTimeout bounds how long a client may take to send a body.
const bodyTimeout = time.Minute

// modernVersion is the first revision without sessions.
const modernVersion = "2026-07-28"

// guard checks what comes before the endpoint sees it.
type guard struct {
	options Options
	log     *slog.Logger
	// streams ends first at shutdown: it is the parent of requests that wait for
	// events rather than for a result.
	streams    context.Context
	endStreams context.CancelFunc
}

func newGuard(o Options) *guard {
	g := &guard{options: o, log: o.Logger}
	g.streams, g.endStreams = context.WithCancel(context.Background())
	return g
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

// mcp passes a request to the endpoint, with its body read and checked.
func (g *guard) mcp(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		if r.Method == http.MethodGet {
			ctx, stop := g.streaming(r.Context())
			defer stop()
			r = r.WithContext(ctx)
		}
		g.options.Endpoint.ServeHTTP(w, r)
		return
	}
	body, ok := g.body(w, r)
	if !ok {
		return
	}
	m, err := wire.Parse(body)
	switch {
	case err != nil:
		rpcError(w, http.StatusBadRequest, nil, -32700, "the body is not one JSON-RPC message")
		return
	case !utf8.Valid(body):
		// An upstream that is strict about it would die of it, for everybody.
		rpcError(w, http.StatusBadRequest, nil, -32700, "the body is not valid UTF-8")
		return
	case ambiguous(body):
		rpcError(w, http.StatusBadRequest, m.ID, -32600, "a member of the message is there twice, or in other letters")
		return
	}
	modern := isModern(r, m)
	switch {
	case m.Method == "notifications/cancelled" && (modern || r.Header.Get("Mcp-Session-Id") == ""):
		// In the modern era the end of the connection cancels. mcp-go keeps all
		// requests without a session under one key: to let this through would
		// cancel somebody else's request of the same id.
		w.WriteHeader(http.StatusAccepted)
		return
	case !front.IsID(m.ID) && m.ID != nil:
		rpcError(w, http.StatusBadRequest, nil, -32600, "the id must be a string or a number")
		return
	case tooBig(m.ID):
		rpcError(w, http.StatusBadRequest, m.ID, -32600, "a numeric id must be an integer within 2^53")
		return
	case m.Method == "subscriptions/listen":
		ctx, stop := g.streaming(r.Context())
		defer stop()
		r = r.WithContext(ctx)
	}
	r.Body = front.NewReadBody(body, m)
	r.ContentLength = int64(len(body))
	g.options.Endpoint.ServeHTTP(w, r)
}

// ambiguous reports a message that another reader could understand otherwise:
// mcp-go takes "Method" for "method", and what is checked here must be what is
// done there.
func ambiguous(body []byte) bool {
	seen := make(map[string]bool, 4)
	odd := false
	_ = wire.Fields(body, func(key string, _ []byte) bool {
		for _, name := range []string{"jsonrpc", "id", "method", "params", "result", "error"} {
			if strings.EqualFold(key, name) {
				odd = key != name || seen[name]
				seen[name] = true
			}
		}
		return !odd
	})
	return odd
}

// streaming is ctx that also ends when the server begins to stop.
func (g *guard) streaming(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.streams, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

func (g *guard) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if r.ContentLength > g.options.MaxBody {
		w.Header().Set("Connection", "close")
		rpcError(w, http.StatusRequestEntityTooLarge, nil, -32600, "the body is too large")
		return nil, false
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(int(min(r.ContentLength, 1<<20)) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, g.options.MaxBody))
	_ = control.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		rpcError(w, http.StatusRequestEntityTooLarge, nil, -32600, "the body is too large")
	case err != nil:
		rpcError(w, http.StatusBadRequest, nil, -32700, "the body could not be read")
	}
	return buf.Bytes(), err == nil
}

// isModern reports whether a message is of the era without sessions: by its
// _meta, or by its header.
func isModern(r *http.Request, m wire.Message) bool {
	if r.Header.Get("Mcp-Protocol-Version") >= modernVersion {
		return true
	}
	if len(m.Params) == 0 || m.Params[0] != '{' {
		return false
	}
	modern := false
	_ = wire.Fields(m.Params, func(key string, value []byte) bool {
		if key != "_meta" || len(value) == 0 || value[0] != '{' {
			return true
		}
		_ = wire.Fields(value, func(key string, value []byte) bool {
			if key == "io.modelcontextprotocol/protocolVersion" {
				modern = string(value) >= `"`+modernVersion
			}
			return true
		})
		return false
	})
	return modern
}

// tooBig reports an id that mcp-go would answer with other digits, so that the
// client would wait for ever.
func tooBig(id json.RawMessage) bool {
	if len(id) == 0 || id[0] == '"' {
		return false
	}
	digits := bytes.TrimLeft(id, "-")
	return len(digits) > 16 || (len(digits) == 16 && string(digits) > "9007199254740992") || bytes.ContainsAny(id, ".eE")
}

func rpcError(w http.ResponseWriter, status int, id json.RawMessage, code int, message string) {
	if id == nil {
		id = json.RawMessage("null")
	}
	writeJSON(w, status, map[string]any{
		"jsonrpc": "2.0", "id": id,
		"error": map[string]any{"code": code, "message": message},
	})
}
