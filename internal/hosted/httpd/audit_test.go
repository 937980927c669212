package httpd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
)

// What is refused is told, whoever refuses it.
func TestAudited(t *testing.T) {
	mcptest.NoLeaks(t)
	var told []string
	h := &audited{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answerOf(w).principal = r.Header.Get("Principal")
		if status := 0; r.URL.RawQuery != "" {
			_, _ = fmt.Sscan(r.URL.RawQuery, &status)
			w.WriteHeader(status)
		}
		fmt.Fprint(w, "text")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
	}), func(r Refusal) {
		told = append(told, strings.TrimSpace(fmt.Sprint(r.Status, " ", r.Method, " ", r.Path, " ", r.Remote, " ", r.Principal)))
	}}
	for _, target := range []string{
		"POST /mcp", "POST /mcp?200", "POST /mcp?401", "GET /status?403", "GET /api/servers", "GET /api/servers?404",
		"POST /api/servers?201", "DELETE /api/servers/x", "PATCH /api/servers/x?409",
	} {
		method, path, _ := strings.Cut(target, " ")
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set("Principal", "token ann")
		h.ServeHTTP(&answer{ResponseWriter: httptest.NewRecorder()}, r)
	}
	want := []string{
		"401 POST /mcp 192.0.2.1 token ann", "403 GET /status 192.0.2.1 token ann", "404 GET /api/servers 192.0.2.1 token ann",
		"409 PATCH /api/servers/x 192.0.2.1 token ann",
	}
	if !slices.Equal(told, want) {
		t.Errorf("got %q", told)
	}
}

// TestAudited_Principal: a refusal names the principal that another handler of the chain has
// proved.
func TestAudited_Principal(t *testing.T) {
	mcptest.NoLeaks(t)
	v := verifierOf(guardedBy(t, "", "a"))
	told := make(chan Refusal, 1)
	s := serve(t, Options{
		Endpoint: whoami, Identity: v.Verifier, Status: func() any { return "up" },
		Admin:   func(*caller.Principal) bool { return false },
		Refused: func(r Refusal) { told <- r },
	})
	s.answer(t, "GET", "/status", "Authorization: Bearer mcpx_a")
	if r := <-told; r.Status != http.StatusForbidden || r.Principal != "token a" {
		t.Errorf("%+v", r)
	}
}
