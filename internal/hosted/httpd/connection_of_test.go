package httpd

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
)

// TestConnectionOf: all requests over one connection have the same caller.Connection, whose Life ends with the
// connection. Requests over another connection have a different one.
func TestConnectionOf(t *testing.T) {
	mcptest.NoLeaks(t)
	seen := make(chan *caller.Connection, 1)
	s := serve(t, Options{Endpoint: stub(func(_ http.ResponseWriter, r *http.Request) { seen <- caller.ConnectionOf(r.Context()) })})
	send := func(c *http.Client) *caller.Connection {
		t.Helper()
		response, err := c.Post(s.url+"/mcp", "application/json", strings.NewReader(ping))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		return <-seen
	}
	a, b := &http.Client{Transport: &http.Transport{}}, &http.Client{Transport: &http.Transport{}}
	defer b.CloseIdleConnections()
	first, again, other := send(a), send(a), send(b)
	if first == nil || first != again || other == nil || first.ID == other.ID {
		t.Errorf("connections %v, %v and %v", first, again, other)
	}
	a.CloseIdleConnections()
	<-first.Life.Done()
	if other.Life.Err() != nil {
		t.Error("another connection ended")
	}
}
