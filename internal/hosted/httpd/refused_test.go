package httpd

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// TestRefused: a refusal by any handler of the chain becomes an event.
func TestRefused(t *testing.T) {
	mcptest.NoLeaks(t)
	var told []string
	journal := &request.Journal{}
	journal.Observe(func(e *request.Event) {
		r := e.Refused
		told = append(told, strings.TrimSpace(fmt.Sprint(r.Status, " ", r.Verb, " ", r.Path, " ", r.Remote, " ", e.Principal)))
	})
	h := &recovered{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answerOf(w).principal = &caller.Principal{Name: r.Header.Get("Principal")}
		if status := 0; r.URL.RawQuery != "" {
			_, _ = fmt.Sscan(r.URL.RawQuery, &status)
			w.WriteHeader(status)
		}
		fmt.Fprint(w, "text")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
	}), journal, slog.New(slog.DiscardHandler)}
	for _, target := range []string{
		"POST /mcp", "POST /mcp?200", "POST /mcp?401", "GET /status?403", "GET /api/servers", "GET /api/servers?404",
		"POST /api/servers?201", "DELETE /api/servers/x", "PATCH /api/servers/x?409",
	} {
		method, path, _ := strings.Cut(target, " ")
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set("Principal", "token ann")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	want := []string{
		"401 POST /mcp 192.0.2.1 token ann", "403 GET /status 192.0.2.1 token ann", "404 GET /api/servers 192.0.2.1 token ann",
		"409 PATCH /api/servers/x 192.0.2.1 token ann",
	}
	if !slices.Equal(told, want) {
		t.Errorf("got %q", told)
	}
}

// TestRefused_Principal: the event of a refusal names the principal, even though another handler of the chain found
// it.
func TestRefused_Principal(t *testing.T) {
	mcptest.NoLeaks(t)
	v := verifierOf(guardedBy(t, "", "a"))
	told := make(chan *request.Event, 1)
	journal := &request.Journal{}
	journal.Observe(func(e *request.Event) { told <- e })
	s := serve(t, Options{
		Endpoint: whoami, Identity: v.Verifier, Status: func() any { return "up" },
		Admin:   func(*caller.Principal) bool { return false },
		Journal: journal,
	})
	s.answer(t, "GET", "/status", "Authorization: Bearer mcpx_a")
	if e := <-told; e.Refused.Status != http.StatusForbidden || e.Principal != "a" || e.Attempted || e.Request {
		t.Errorf("%+v", e)
	}
}
