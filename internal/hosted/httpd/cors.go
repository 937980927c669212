package httpd

import (
	"net/http"
	"strings"
)

// shared lets web pages read the responses (CORS), if the handler guard has accepted their origin. In the chain it comes before the
// handler authenticated, because preflight requests have no token. Without auth, no web page may read responses, because otherwise
// any page that is open on this machine could call every tool.
type shared struct {
	next    http.Handler
	options *Options
}

// ServeHTTP implements http.Handler. The handler guard has already checked the origin.
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
	// All headers are allowed, because MCP servers may define headers of their own (Mcp-Param-...). Only the header with the token
	// gives any rights.
	if wanted := strings.Join(r.Header.Values("Access-Control-Request-Headers"), ", "); wanted != "" {
		h.Set("Access-Control-Allow-Headers", wanted)
		h.Add("Vary", "Access-Control-Request-Headers")
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}
