package front

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/wire"
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
	web := connected(t, front)
	session := func(who string, c *webClient, headers ...string) string {
		t.Helper()
		before := len(fake.Log().Calls("echo"))
		body := execOver(t, c, modernCall("1", "echo", `{"text":"x"}`, ""), append(headers, "Who", who)...)
		calls := fake.Log().Calls("echo")
		if len(calls) != before+1 {
			t.Fatal(body)
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

// TestRequests_HomeAnswered: each connection has a server process of its own. One process asks during a call, and the client
// answers over another connection: the answer reaches the process that asked. If a client changes its requestState so that it
// names the connection of another client, its answer does not reach the process of that other connection.
func TestRequests_HomeAnswered(t *testing.T) {
	mcptest.NoLeaks(t)
	server := stdio(t, "fake", mcptest.Spec{Era: mcptest.EraModern})
	server.PerClient = true
	f := connect(t, view.Options{}, server)
	f.registry.WaitTried(t.Context())
	front := New(f.view, Options{})
	t.Cleanup(front.Close)
	web := connected(t, front)
	a, b, mallory := newWebClient(t, web, modernEra), newWebClient(t, web, modernEra), newWebClient(t, web, modernEra)
	ask := func(c *webClient, more string) (r inputResult) {
		t.Helper()
		if err := json.Unmarshal([]byte(execOver(t, c, modernCall("1", "ask", `{}`, more))), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	pid := func(c *webClient) string { return execOver(t, c, modernCall("1", "pid", `{}`, "")) }
	if pid(a) == pid(b) || pid(b) == pid(mallory) {
		t.Fatal("two connections share a process")
	}
	answer := func(state string) string {
		return `,"inputResponses":{"word":{"action":"accept","content":{"word":"x"}}},"requestState":` + string(wire.AppendQuoted(nil, state))
	}
	state := ask(a, "").Result.RequestState
	if state == nil {
		t.Fatal("the server did not ask")
	}
	if got := ask(b, answer(*state)); got.Result.ResultType != "complete" || len(got.Result.Content) == 0 ||
		!strings.HasPrefix(got.Result.Content[0].Text, "answered: ") {
		t.Errorf("the answer over another connection: %+v", got)
	}
	own, ids := *ask(mallory, "").Result.RequestState, regexp.MustCompile(`mcpx\.home\.\d+`)
	forged := ids.ReplaceAllString(own, ids.FindString(*state))
	if forged == own {
		t.Fatalf("%s names no connection", own)
	}
	if got := ask(mallory, answer(forged)); got.Result.ResultType != "complete" {
		t.Errorf("a changed state left the process of its sender: %+v", got)
	}
}

// connected returns a server for front that gives each connection an id, and each request the principal in its header Who.
func connected(t *testing.T, front *Front) *httptest.Server {
	t.Helper()
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
	return web
}

// execOver sends a modern call of exec and returns the body of the answer. Headers has names and values in turn.
func execOver(t *testing.T, c *webClient, call string, headers ...string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", c.url, strings.NewReader(call))
	if err != nil {
		t.Fatal(err)
	}
	headers = append([]string{
		"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", modernEra,
		"Mcp-Method", "tools/call", "Mcp-Name", "exec",
	}, headers...)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(bodyOf(t, response))
}
