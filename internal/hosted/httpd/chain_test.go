package httpd

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"mcpx/internal/request"
)

// TestRecovered_Events: the events of an answer end once each, when the handlers have let go of the request, and the client
// has its answer; also where a handler panics after them.
func TestRecovered_Events(t *testing.T) {
	var hold, over chan struct{}
	var released bool
	var all []*request.Event
	journal := &request.Journal{}
	journal.Observe(func(e *request.Event) {
		if !released {
			t.Error("a handler is not done")
		}
		if all = append(all, e); len(all) == 1 {
			<-hold
		} else {
			close(over)
		}
	})
	server := httptest.NewServer(&recovered{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { released = true }()
		answerOf(w).events = []*request.Event{journal.Begin("ping", nil), journal.Begin("tools/call", nil)}
		if r.URL.Path == "/panic" {
			panic("on purpose")
		}
		_, _ = io.WriteString(w, "the answer")
	}), journal, slog.New(slog.DiscardHandler)})
	defer server.Close()
	for path, want := range map[string]struct {
		status int
		body   string
	}{"/": {200, "the answer"}, "/panic": {500, "internal error\n"}} {
		hold, over, released, all = make(chan struct{}), make(chan struct{}), false, nil
		response, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, len(want.body))
		if _, err := io.ReadFull(response.Body, body); err != nil || response.StatusCode != want.status || string(body) != want.body {
			t.Errorf("%s: %d %q, %v", path, response.StatusCode, body, err)
		}
		close(hold)
		<-over
		response.Body.Close()
		if len(all) != 2 || all[0].Method != "ping" || all[1].Method != "tools/call" {
			t.Errorf("%s: the events %+v", path, all)
		}
	}
}
