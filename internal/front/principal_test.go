package front

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/view"
)

// TestHTTP_Principal: a request that names the session of another principal is answered as if the session did
// not exist. The session stays usable for its own principal.
func TestHTTP_Principal(t *testing.T) {
	mcptest.NoLeaks(t)
	f := connectWith(t, Options{}, view.Options{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who := r.Header.Get("Who"); who != "" {
			r = r.WithContext(caller.With(r.Context(), &caller.Principal{ID: who}, time.Time{}))
		}
		f.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	request, err := http.NewRequestWithContext(t.Context(), "POST", web.URL, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Who", "alice")
	response, err := web.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	session := response.Header.Get("Mcp-Session-Id")
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	for who, want := range map[string]int{"bob": 404, "": 404, "alice": 200} {
		if got, _, answer := post(t, web, ping, map[string]string{"Mcp-Session-Id": session, "Who": who}); got != want {
			t.Errorf("%q: %d %s, want %d", who, got, answer, want)
		}
		_, _, unknown := post(t, web, ping, map[string]string{"Mcp-Session-Id": "mcpx-none", "Who": who})
		if _, _, answer := post(t, web, ping, map[string]string{"Mcp-Session-Id": session, "Who": who}); want == 404 && answer != unknown {
			t.Errorf("%q: %s differs from an unknown session: %s", who, answer, unknown)
		}
	}
}
