package front

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/results"
	"mcpx/internal/view"
)

// spy is a view that records which clients are attached to it and what they call. traits, if not nil, replaces
// the traits of the view.
type spy struct {
	view.View
	traits func() view.Traits

	mu       sync.Mutex
	attached []*attachment
	calls    []*caller.Client
}

type attachment struct {
	client   string
	as       view.Attachment
	detached int
}

// spied makes a front whose view is a spy around the view of f. The front is closed when the test ends.
func spied(t *testing.T, f shown, options Options) (*spy, *Front) {
	t.Helper()
	s := &spy{View: f.two}
	front := New(s, options)
	t.Cleanup(front.Close)
	return s, front
}

func (s *spy) Traits() view.Traits {
	if s.traits != nil {
		return s.traits()
	}
	return s.View.Traits()
}

func (s *spy) Attach(client *caller.Client, as view.Attachment) (detach func()) {
	one := &attachment{client: client.ID, as: as}
	s.mu.Lock()
	s.attached = append(s.attached, one)
	s.mu.Unlock()
	end := s.View.Attach(client, as)
	return func() {
		s.mu.Lock()
		one.detached++
		s.mu.Unlock()
		end()
	}
}

func (s *spy) Call(ctx context.Context, call view.Call) (*results.Result, error) {
	s.mu.Lock()
	s.calls = append(s.calls, call.Client)
	s.mu.Unlock()
	return s.View.Call(ctx, call)
}

// open counts the attachments of a client that have not been detached: those that listen, or those that do
// not. An empty client means all clients.
func (s *spy) open(client string, listens bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.attached {
		if (client == "" || client == one.client) && (one.as.Changed != nil) == listens && !one.as.Sole && one.detached == 0 {
			n++
		}
	}
	return n
}

// settled checks that every attachment has been detached exactly once, except the front's own and the attachments
// of sole clients. Then it forgets all attachments.
func (s *spy) settled(t *testing.T, way string, want ...string) {
	t.Helper()
	var got []string
	mcptest.WaitFor(t, way+": the last detach", patience, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		got = nil
		for _, one := range s.attached {
			if one.detached == 0 && !one.as.Sole && one.client != "all clients" {
				return false
			}
			what := " is here"
			switch {
			case one.as.Sole:
				what = " is alone"
			case one.as.Changed != nil:
				what = " listens"
			}
			name, _, _ := strings.Cut(one.client, " ")
			if id, _, session := strings.Cut(name, "-"); session {
				name = id
			}
			got = append(got, name+what)
			if one.detached > 1 || one.as.Sole && one.detached > 0 { // an attachment with Sole stays; the client's other one is detached
				t.Errorf("%s: %s was detached %d times", way, one.client, one.detached)
			}
		}
		return true
	})
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", way, got, want)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attached = nil
}

// TestAttach: on every transport, each client is attached to the view, and detached exactly once when it
// leaves.
func TestAttach(t *testing.T) {
	mcptest.NoLeaks(t)
	f := connect(t, view.Options{}, remote("fake", mcptest.Spec{}.HTTP(t)))
	f.registry.WaitTried(t.Context())
	seen, front := spied(t, f, Options{SessionIdle: time.Hour})
	if n := seen.open("all clients", true); n != 1 {
		t.Errorf("the front is attached %d times", n)
	}
	seen.attached = seen.attached[:0:0]
	web := asPrincipals(t, front)
	initialize := strings.SplitN(hello("a"), "\n", 2)[0]
	send := func(ctx context.Context, verb, body string, headers ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, verb, web.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		response, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	open := func(who string) (session string) {
		return send(t.Context(), "POST", initialize, "Who", who).Header.Get("Mcp-Session-Id")
	}
	exec := []string{"Who", "alice", "Mcp-Protocol-Version", modernEra, "Mcp-Method", "tools/call", "Mcp-Name", "exec"}

	send(t.Context(), "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":1,"clientInfo":[],"protocolVersion":7}}`)
	seen.settled(t, "an initialize that is refused")

	send(t.Context(), "DELETE", "", "Mcp-Session-Id", open(""))
	seen.settled(t, "a session of anybody", "mcpx is here")
	session := open("alice")
	if n := seen.open(session, true) + seen.open(session, false); n != 2 {
		t.Errorf("a session is attached %d times", n)
	}
	send(t.Context(), "DELETE", "", "Mcp-Session-Id", session, "Who", "alice")
	seen.settled(t, "a session of a principal", "mcpx is here", "mcpx listens")

	send(t.Context(), "POST", modernExec("1", "fake", "echo", `{"text":"x"}`), exec...)
	seen.settled(t, "a modern request", "request is here")
	send(t.Context(), "POST", modernCall("1", "ask", `{}`, ""), exec...)
	if n := seen.open("", false); n != 1 {
		t.Errorf("a suspended call is attached %d times", n)
	}
	front.suspended.end(errNoAnswer)
	seen.settled(t, "a suspended call", "request is here")
	front.suspended.ended = nil

	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	send(ctx, "POST", listenLine("1", `{"toolsListChanged":true}`), "Who", "alice", "Mcp-Protocol-Version", modernEra, "Mcp-Method", "subscriptions/listen")
	leave()
	seen.settled(t, "a subscription", "request is here", "request listens")

	stream := openStream(t, web, "alice")
	stream.send(t, strings.TrimSpace(listenLine("1", `{"toolsListChanged":true}`)))
	stream.await(t, "subscriptions/acknowledged")
	stream.end()
	seen.settled(t, "a stream of the older transport", "mcpx is here", "mcpx listens", "mcpx listens")

	p := dialSilent(t, shown{Front: front}, StdioOptions{})
	p.send(t, hello("a"))
	mcptest.WaitFor(t, "initialize", patience, func() bool { return p.with(`"id":0,`) == 1 })
	p.in.Close()
	seen.settled(t, "stdio", "stdio is alone", "stdio is here")

	open("alice")
	open("")
	front.Close()
	seen.settled(t, "the end of the front", "mcpx is here", "mcpx is here", "mcpx listens")
}

// TestAttach_End: a closed front is no longer attached to its view, even if Close is called twice.
func TestAttach_End(t *testing.T) {
	seen, front := spied(t, connect(t, view.Options{}), Options{})
	front.Close()
	front.Close()
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if len(seen.attached) != 1 || seen.attached[0].detached != 1 {
		t.Errorf("%+v", seen.attached)
	}
}
