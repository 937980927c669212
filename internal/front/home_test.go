package front

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/view"
)

// TestRequests_Home: all modern requests of one principal and client program share one session with a
// PerClient server. Another principal whose client has the same name does not share it. Requests without a
// principal share a session if they come over the same connection, unless a proxy sent them.
func TestRequests_Home(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	server := remote("fake", fake)
	server.PerClient = true
	f := connect(t, view.Options{}, server)
	f.registry.WaitTried(t.Context())
	front := New(f.view, Options{})
	t.Cleanup(front.Close)
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who := r.Header.Get("Who"); who != "" {
			r = r.WithContext(caller.With(r.Context(), &caller.Principal{ID: who}, time.Time{}))
		}
		front.ServeHTTP(w, r)
	}))
	var connections atomic.Uint64
	web.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return caller.Over(ctx, &caller.Connection{ID: connections.Add(1), Life: t.Context()})
	}
	web.Start()
	t.Cleanup(web.Close)
	session := func(who string, c *webClient, headers ...string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", web.URL, strings.NewReader(modernCall("1", "echo", `{"text":"x"}`, "")))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": modernEra,
			"Mcp-Method": "tools/call", "Mcp-Name": "exec", "Who": who,
		} {
			r.Header.Set(name, value)
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		before := len(fake.Log().Calls("echo"))
		response, err := c.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body := bodyOf(t, response)
		calls := fake.Log().Calls("echo")
		if len(calls) != before+1 {
			t.Fatalf("%s: %s", response.Status, body)
		}
		return calls[before].Session
	}
	a, b := newWebClient(t, web, modernEra), newWebClient(t, web, modernEra)
	alice, nobody := session("alice", a), session("", a)
	for i, c := range []*webClient{a, b, a} {
		if got := session("alice", c); got != alice {
			t.Errorf("call %d of the principal went over another session", i)
		}
	}
	if session("", a) != nobody {
		t.Error("the connection got another session")
	}
	others := map[string]string{alice: "alice", nobody: "the connection"}
	for what, got := range map[string]string{
		"mallory": session("mallory", a), "another connection": session("", b),
		"a proxy": session("", a, "X-Forwarded-For", "192.0.2.1"), "a proxy's next": session("", a, "X-Forwarded-For", "192.0.2.2"),
	} {
		if others[got] != "" {
			t.Errorf("%s got the session of %s", what, others[got])
		}
		others[got] = what
	}
}
