package httpd

import (
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
)

// guard lets in only requests whose Host and Origin are this machine. It protects
// from pages in a browser: every page sends its origin, and a page that reaches mcpx
// by DNS rebinding sends another host. guard answers a panic of next with 500; net/http
// would close the connection.
type guard struct {
	next http.Handler
	log  *slog.Logger
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if what := recover(); what != nil {
			if what == http.ErrAbortHandler {
				panic(what)
			}
			g.log.Error("panic in a request", "path", r.URL.Path, "panic", what, "stack", string(debug.Stack()))
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
	}()
	switch {
	case !localHost(r.Host):
		g.log.Warn("request refused", "reason", "host", "host", r.Host, "remote", r.RemoteAddr)
		http.Error(w, "this Host is not served here", http.StatusForbidden)
	case !localOrigins(r.Header["Origin"]):
		g.log.Warn("request refused", "reason", "origin", "origin", r.Header["Origin"], "remote", r.RemoteAddr)
		http.Error(w, "this Origin may not connect", http.StatusForbidden)
	default:
		g.next.ServeHTTP(w, r)
	}
}

func localHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return isLoopback(strings.ToLower(strings.Trim(host, "[]")))
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback() // false if host is no address
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
