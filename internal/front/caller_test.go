package front

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/view"
)

// TestCaller: over each transport and in both eras, the view gets the complete client: its principal, its
// headers, the traits of the view, and what the client says about itself.
func TestCaller(t *testing.T) {
	mcptest.NoLeaks(t)
	seen, front := spied(t, connect(t, view.Options{}), Options{})
	seen.traits = func() view.Traits { return view.Traits{Name: "the view", Transparent: true, Apps: true} }
	web := asPrincipals(t, front)
	const inspect = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"inspect","arguments":{}}}`
	modern := strings.Replace(inspect, `"params":{`, `"params":{`+modernMeta+`,`, 1)
	legacy := strings.SplitN(hello("old"), "\n", 2)[0]

	overHTTP := func(body, key string, headers ...string) *httptest.ResponseRecorder {
		r := asking("POST", body)
		r = r.WithContext(caller.With(r.Context(), &caller.Principal{ID: "alice"}, time.Time{}))
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		r.Header.Set("X-Key", key)
		w := httptest.NewRecorder()
		if front.ServeHTTP(w, r); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return w
	}
	overSSE := func(messages ...string) {
		s := openStream(t, web, "alice", "X-Key", "of the stream")
		for _, one := range messages {
			s.send(t, one)
		}
		s.await(t, `"id":1,`)
	}
	overStdio := func(messages ...string) {
		p := dialSilent(t, shown{Front: front}, StdioOptions{})
		p.send(t, strings.Join(messages, "\n")+"\n")
		mcptest.WaitFor(t, "the answer", patience, func() bool { return p.with(`"id":1,`) == 1 })
	}
	for _, test := range []struct {
		way                string
		call               func()
		who, key           string
		name, version      string
		notified, reads    bool // whether the client gets notifications outside of requests, and whether it gets requests
		identity, samePeer string
	}{
		{
			"http, legacy", func() {
				overHTTP(inspect, "of the message", "Mcp-Session-Id", overHTTP(legacy, "of initialize").Header().Get("Mcp-Session-Id"))
			},
			"alice", "of the message", "old", legacyEra, true, true, "mcpx-", "",
		},
		{
			"http, modern", func() {
				overHTTP(modern, "of the message", "Mcp-Protocol-Version", modernEra, "Mcp-Method", "tools/call", "Mcp-Name", "inspect")
			},
			"alice", "of the message", "t", modernEra, false, false, "request ", "connection ",
		},
		{"sse, legacy", func() { overSSE(legacy, inspect) }, "alice", "of the stream", "old", legacyEra, true, true, "mcpx-", ""},
		{"sse, modern", func() { overSSE(modern) }, "alice", "of the stream", "t", modernEra, true, false, "mcpx-", ""},
		{"stdio, legacy", func() { overStdio(legacy, inspect) }, "", "", "old", legacyEra, true, true, "stdio", ""},
		{"stdio, modern", func() { overStdio(modern) }, "", "", "t", modernEra, true, false, "stdio", ""},
	} {
		test.call()
		seen.mu.Lock()
		calls := seen.calls
		seen.calls = nil
		seen.mu.Unlock()
		if len(calls) != 1 {
			t.Fatalf("%s: %d calls", test.way, len(calls))
		}
		c := calls[0]
		if got := c.Principal.Key(); got != test.who {
			t.Errorf("%s: on behalf of %q", test.way, got)
		}
		if got := c.Headers.Get("X-Key"); got != test.key {
			t.Errorf("%s: the headers %v", test.way, c.Headers)
		}
		if c.View != "the view" || !c.Transparent || !c.Apps {
			t.Errorf("%s: the view %q, alone %t, apps %t", test.way, c.View, c.Transparent, c.Apps)
		}
		if c.Name != test.name || c.Version != test.version || string(c.Capabilities) != "{}" {
			t.Errorf("%s: it says %q, %q, %s", test.way, c.Name, c.Version, c.Capabilities)
		}
		if (c.Notify != nil) != test.notified || (c.Request != nil) != test.reads {
			t.Errorf("%s: notifications %t, requests %t", test.way, c.Notify != nil, c.Request != nil)
		}
		if !strings.HasPrefix(c.ID, test.identity) || !strings.HasPrefix(c.Peer, test.samePeer) || (c.Peer == "") != (test.samePeer == "") {
			t.Errorf("%s: is %q at %q", test.way, c.ID, c.Peer)
		}
	}
}

// sending is a view that records which client each message to a server comes from.
type sending struct {
	view.View
	from []*caller.Client
}

func (s *sending) Send(_ context.Context, q *request.Request) (json.RawMessage, error) {
	s.from = append(s.from, q.Client)
	return nil, nil
}

// TestCaller_Notification: a session's notification reaches the server with the headers and the credential of
// its own HTTP request, as requests do.
func TestCaller_Notification(t *testing.T) {
	seen := &sending{View: connect(t, view.Options{}).two}
	front := New(seen, Options{})
	t.Cleanup(front.Close)
	send := func(body, session, key string) *httptest.ResponseRecorder {
		r := asking("POST", body)
		r = r.WithContext(caller.With(r.Context(), &caller.Principal{ID: "alice", Name: key}, time.Time{}))
		r.Header.Set("X-Key", key)
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		w := httptest.NewRecorder()
		front.ServeHTTP(w, r)
		return w
	}
	session := send(strings.SplitN(hello("a"), "\n", 2)[0], "", "old").Header().Get("Mcp-Session-Id")
	for i, method := range []string{"notifications/roots/list_changed", "notifications/made_up"} {
		send(`{"jsonrpc":"2.0","method":"`+method+`"}`, session, "new")
		if len(seen.from) != i+1 {
			t.Fatalf("%s: %d messages", method, len(seen.from))
		}
		if c := seen.from[i]; c.ID != session || c.Name != "a" || c.Headers.Get("X-Key") != "new" || c.Principal.Name != "new" {
			t.Errorf("%s: from %+v with %v", method, c, c.Headers)
		}
	}
}
