package httpd

import (
	"net/http"
	"strings"
)

// shared lets web pages of the origins that guard admits read the answers (CORS). Preflight requests have no token,
// so it comes before authenticated. Without auth no page may read answers: any page open on this machine could call
// every tool.
type shared struct {
	next    http.Handler
	options *Options
}

// ServeHTTP implements http.Handler. The origin was checked by guard.
func (s *shared) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	origins := r.Header["Origin"]
	if len(origins) == 0 || s.options.Identity.Options() == nil {
		s.next.ServeHTTP(w, r)
		return
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origins[0])
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Mcp-Session-Id, Mcp-Protocol-Version, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		s.next.ServeHTTP(w, r)
		return
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	// All headers are allowed, as MCP servers may define headers of their own (Mcp-Param-...). Without the token none
	// of them gives any rights.
	if wanted := strings.Join(r.Header.Values("Access-Control-Request-Headers"), ", "); wanted != "" {
		h.Set("Access-Control-Allow-Headers", wanted)
		h.Add("Vary", "Access-Control-Request-Headers")
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}
