package httpd

import (
	"net/http"
	"strings"
)

// shared lets web pages read the answers (CORS), of the origins that guard lets in. Browsers ask
// first with OPTIONS and without a token, so it comes before authenticated. Without auth no page
// may read them: any page of this machine could call every tool.
type shared struct {
	next    http.Handler
	options *Options
}

// ServeHTTP implements http.Handler. guard has checked the origin.
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
	// MCP lets servers name headers of their own (Mcp-Param-...), so all are allowed: none
	// of them has a power without the token.
	if wanted := strings.Join(r.Header.Values("Access-Control-Request-Headers"), ", "); wanted != "" {
		h.Set("Access-Control-Allow-Headers", wanted)
		h.Add("Vary", "Access-Control-Request-Headers")
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}
