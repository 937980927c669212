package oauth

import (
	"net/http"
	"net/url"

	"mcpx/internal/outbound"
)

// newHTTPClient makes the client for everything but the upstream itself: metadata and
// redirects name addresses, and a server that lies must not lead into the user's network.
func newHTTPClient(s Server) *http.Client {
	u, err := url.Parse(s.URL)
	return outbound.NewClient(outbound.Reach{Loopback: err == nil && outbound.Loopback(u.Hostname()), Private: s.AllowPrivate, Key: "oauth.allow_private"})
}
