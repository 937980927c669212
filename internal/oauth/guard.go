package oauth

import (
	"net/http"

	"mcpx/internal/outbound"
)

// newHTTPClient makes the client for everything but the upstream itself: metadata and
// redirects name addresses, and a server that lies must not lead into the user's network.
func newHTTPClient(s Server) *http.Client {
	return outbound.NewClient(outbound.Reach{Loopback: outbound.LoopbackURL(s.URL), Private: s.AllowPrivate, Key: "oauth.allow_private"})
}
