package httpd

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestAfterwards: what happens after a request starts when the handlers have let go of it, and
// the client has its answer.
func TestAfterwards(t *testing.T) {
	var hold, over chan struct{}
	var ended bool
	server := httptest.NewServer(&recovered{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended = true }()
		answerOf(w).Afterwards(func() {
			if !ended {
				t.Error("a handler is not done")
			}
			<-hold
			close(over)
		})
		if r.URL.Path == "/panic" {
			panic("on purpose")
		}
		_, _ = io.WriteString(w, "the answer")
	}), slog.New(slog.DiscardHandler)})
	defer server.Close()
	for path, want := range map[string]struct {
		status int
		body   string
	}{"/": {200, "the answer"}, "/panic": {500, "internal error\n"}} {
		hold, over, ended = make(chan struct{}), make(chan struct{}), false
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
	}
}
