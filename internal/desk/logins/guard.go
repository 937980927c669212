package logins

import (
	"net/http"

	"mcpx/internal/base/netguard"
)

// newHTTPClient makes the client for everything but the upstream itself: metadata and
// redirects name addresses, and a server that lies must not lead into the user's network.
func newHTTPClient(s Server) *http.Client {
	return netguard.NewClient(netguard.Reach{Loopback: netguard.LoopbackURL(s.URL), Private: s.AllowPrivate, Key: "oauth.allow_private"})
}
