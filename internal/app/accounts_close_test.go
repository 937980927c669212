package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/desk/logins"
	"mcpx/internal/mcptest"
)

// TestClose_Accounts: Close waits for requests for tokens of principals. If mcpx ended before the response to the renewal of a login, the
// login would be lost.
func TestClose_Accounts(t *testing.T) {
	mcptest.NoLeaks(t)
	ownFolders(t)
	a, err := New(Options{Config: configOf(t, nil, `[{"principals":["ann"]}]`, ""), Profile: Hosted, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	asked, closed := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	defer web.Close()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":"%s/token"}`, web.URL, web.URL)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		select { // a token endpoint that takes a little
		case <-closed:
		case <-time.After(50 * time.Millisecond):
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"new","token_type":"Bearer"}`)
	})
	all, err := a.accountStore()
	if err != nil {
		t.Fatal(err)
	}
	s := logins.Server{Name: "tracker", URL: web.URL + "/mcp", OAuth: conf.OAuth{ClientID: "mcpx", Issuer: web.URL}}
	wrap, secrets := all.Exchange(s)("token ann", func() string { return "jwt" })
	ctx, giveUp := context.WithCancel(t.Context())
	go func() { // ends with giveUp
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("{}"))
		_, _ = wrap(http.DefaultTransport).RoundTrip(req)
	}()
	<-asked
	giveUp()
	if a.Close(); !slices.Contains(secrets(), "new") {
		t.Error("the response to a request for a token came after Close")
	}
	close(closed)
}
