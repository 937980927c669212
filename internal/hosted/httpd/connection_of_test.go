package httpd

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
)

// TestConnectionOf: the requests of one connection share a caller.Connection, which ends with it; those of another have
// another.
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
