package upstream

import (
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/transport"
)

// TestNoSessionIDs: many HTTP servers, above all hosted ones, give no session ids. mcpx uses such a server like
// any other, with one handshake, and sends no DELETE at the end.
func TestNoSessionIDs(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{NoSession: true}.HTTP(t)
	u := ready(t, at(transport.HTTP, server.URL))
	mustEcho(t, u)
	mustEcho(t, u)
	u.Close(0)
	if got := server.Count("initialize"); got != 1 {
		t.Errorf("%d handshakes", got)
	}
	for _, e := range server.Log().Event(mcptest.EventHTTP) {
		if id := e.Header.Get("Mcp-Session-Id"); id != "" || strings.HasPrefix(e.Text, "DELETE ") {
			t.Errorf("%s with the session %q", e.Text, id)
		}
	}
}
