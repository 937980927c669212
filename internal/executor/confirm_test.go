package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/results"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// confirming starts servers. The parameter confirm says which calls to the server "fake" need a confirmation by the user.
func confirming(t testing.TB, options Options, confirm conf.Confirm, servers ...registry.Server) *Executor {
	t.Helper()
	e := executing(t, options, nil, servers...)
	e.registry.Apply(servers, registry.Options{Rules: confirmed(confirm)}, nil)
	return e
}

// confirmed returns rules in which the parameter confirm says which calls to the server "fake" need a confirmation.
func confirmed(confirm conf.Confirm) *policy.Rules {
	return &policy.Rules{Servers: map[string]policy.ServerRules{"fake": {Confirm: confirm}}}
}

// TestConfirmed_Input: a modern client answers a question of the server by repeating its call. If the call needs a
// confirmation, the user is asked to confirm it only once.
func TestConfirmed_Input(t *testing.T) {
	mcptest.NoLeaks(t)
	for way, call := range ways {
		t.Run(way, func(t *testing.T) { confirmedInput(t, way == "alone", call) })
	}
}

// confirmedInput makes calls in one way. relayed means that this way passes a server's question on to a modern client.
func confirmedInput(t *testing.T, relayed bool, call func(testing.TB, *Executor, Request) *results.Result) {
	for _, confirm := range []conf.Confirm{conf.ConfirmNone, conf.ConfirmAll} {
		e := confirming(t, Options{}, confirm, piped(t, "fake", mcptest.Spec{Era: mcptest.EraModern}))
		var asked []string
		client := &caller.Client{ID: "1", Version: "2026-07-28", Capabilities: json.RawMessage(`{"elicitation":{}}`)}
		client.Request = func(_ context.Context, _ string, params json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
			asked = append(asked, string(params))
			return json.RawMessage(`{"action":"accept","content":{"word":"mellon","run":true}}`), nil
		}
		got := call(t, e, Request{From: request.From{Client: client}, Server: "fake", Tool: "ask"})
		switch {
		case confirm == conf.ConfirmNone && !relayed:
			if len(asked) != 1 || !strings.Contains(asked[0], "Which word?") || got.IsError {
				t.Errorf("asked %q, got %+v", asked, got)
			}
		case confirm == conf.ConfirmNone:
			if len(asked) != 0 || !strings.Contains(string(got.Whole), "Which word?") {
				t.Errorf("asked %q, got %+v", asked, got)
			}
		case len(asked) != 2 || !strings.Contains(asked[0], "Run fake.ask?") || !strings.Contains(asked[1], "Which word?") || got.IsError || got.Whole != nil:
			t.Errorf("asked %q, got %+v", asked, got)
		}
	}
}

// TestConfirmed_late: if a tool gets hidden while the user is still deciding, the call is not made, even if the user confirms
// it.
func TestConfirmed_late(t *testing.T) {
	mcptest.NoLeaks(t)
	for way, call := range ways {
		t.Run(way, func(t *testing.T) { confirmedLate(t, call) })
	}
}

func confirmedLate(t *testing.T, by func(testing.TB, *Executor, Request) *results.Result) {
	fake := mcptest.Spec{}.HTTP(t)
	servers := []registry.Server{{Spec: upstream.Spec{Options: transport.Options{Name: "fake", Type: transport.HTTP, Remote: transport.Remote{URL: fake.URL}}}, Definition: fake.URL}}
	e := confirming(t, Options{}, conf.ConfirmAll, servers...)
	hide := false
	client := &caller.Client{ID: "1", Version: "2025-11-25", Capabilities: json.RawMessage(`{"elicitation":{}}`)}
	client.Request = func(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		if hide {
			e.registry.Apply(servers, registry.Options{Rules: hiding(func(_ string, tool *catalog.Tool) bool { return tool.Name != "echo" })}, nil)
			mcptest.WaitFor(t, "the new rules", patience, func() bool {
				s, _ := e.Catalogue(client).Server("fake")
				_, there := s.Tool("echo")
				return !there
			})
		}
		return json.RawMessage(`{"action":"accept","content":{"run":true}}`), nil
	}
	call := Request{From: request.From{Client: client}, Server: "fake", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)}
	if got := by(t, e, call); got.IsError {
		t.Errorf("got %s", got.Content)
	}
	hide = true
	if got := by(t, e, call); got.Code != results.CodeToolNotFound {
		t.Errorf("got %s", got.Content)
	}
	if calls := fake.Log().Calls("echo"); len(calls) != 1 {
		t.Errorf("%d calls", len(calls))
	}
}

// TestChanged: the tool of a call is checked against what its server lists now, not against the catalogue on disk that was
// current when the call began.
func TestChanged(t *testing.T) {
	mcptest.NoLeaks(t)
	tool := func(description string) json.RawMessage {
		return json.RawMessage(`[{"name":"echo","description":"` + description + `","inputSchema":{"type":"object"}}]`)
	}
	for _, c := range []struct{ now, code string }{{"Old", ""}, {"New", ""}, {"Bad", results.CodeToolNotFound}} {
		fake := mcptest.Spec{Tools: tool("Old")}.HTTP(t)
		servers := []registry.Server{{Spec: upstream.Spec{Options: transport.Options{Name: "fake", Type: transport.HTTP, Remote: transport.Remote{URL: fake.URL}}}, Definition: fake.URL, Key: registry.Key("fake")}}
		options := registry.Options{CacheDir: t.TempDir(), Rules: hiding(func(_ string, tool *catalog.Tool) bool { return tool.Description != "Bad" })}
		before := registry.New(servers, options)
		before.Start()
		before.WaitTried(t.Context())
		before.Close(time.Second)
		fake.SetTools(tool(c.now))
		r := registry.New(servers, options)
		var all trail
		e := chainedWith(r, Options{Journal: observed(all.end)}, all.admit, nil)
		seen := e.Catalogue(nil)
		if s, _ := seen.Server("fake"); len(s.Tools) != 1 {
			t.Fatalf("on disk: %+v", s)
		}
		r.Start()
		got := exec(t, e, Request{Catalogue: seen, Server: "fake", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)})
		if got.Code != c.code {
			t.Errorf("%s: %s", c.now, got.Content)
		}
		if calls := fake.Log().Calls("echo"); len(calls) != 0 && c.code != "" {
			t.Errorf("%s: %d calls", c.now, len(calls))
		}
		// The call may have been admitted before its server listed the tools that it has now.
		if ends := all.take(t); len(ends) != 1 || strings.TrimSuffix(ends[0], ", not begun") != "call fake.echo "+cmp.Or(c.code, "RESULT") {
			t.Errorf("%s: %q", c.now, ends)
		}
		r.Close(time.Second)
	}
}

// TestConfirmed_Unanswered: if a client never answers the question, the call is not made. It ends after the 15 minutes that the
// user has, whatever its own timeout is.
func TestConfirmed_Unanswered(t *testing.T) {
	for way, by := range ways {
		t.Run(way, func(t *testing.T) { confirmedUnanswered(t, by) })
	}
}

func confirmedUnanswered(t *testing.T, by func(testing.TB, *Executor, Request) *results.Result) {
	bubble(t, func(t *testing.T) {
		e := confirming(t, Options{Servers: map[string]ServerOptions{"fake": {CallTimeout: time.Second}}}, conf.ConfirmAll, piped(t, "fake", mcptest.Spec{}))
		client := &caller.Client{ID: "1", Version: "2025-11-25", Capabilities: json.RawMessage(`{"elicitation":{}}`)}
		client.Request = func(ctx context.Context, _ string, _ json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began := time.Now()
		got := by(t, e, Request{From: request.From{Client: client}, Server: "fake", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)})
		if text := said(t, got); !got.IsError || !strings.Contains(text, "did not confirm the call of fake.echo within 15m0s; it was not made") || time.Since(began) != 15*time.Minute {
			t.Errorf("after %s: %s", time.Since(began), text)
		}
	})
}

// TestConfirmed_Replaced: the server of a call is replaced while the user is deciding. The call then starts again. The user
// must confirm it again only if its tool has changed. The time that the user takes is not part of the call's timeout, nor of
// its wait for the server.
func TestConfirmed_Replaced(t *testing.T) {
	tool := func(description string) mcptest.Spec {
		return mcptest.Spec{Tools: json.RawMessage(`[{"name":"echo","description":"` + description + `"}]`), InitDelay: 5 * time.Second}
	}
	for way, by := range ways {
		user := 10 * time.Minute
		if way == "each" { // the user is asked once for all calls, before their events begin
			user = 0
		}
		t.Run(way, func(t *testing.T) { confirmedReplaced(t, tool, user, by) })
	}
}

// confirmedReplaced makes calls in one way. user is the time for which the call must have waited for the user, according to its
// event.
func confirmedReplaced(t *testing.T, tool func(string) mcptest.Spec, user time.Duration, by func(testing.TB, *Executor, Request) *results.Result) {
	for now, want := range map[string]int{"Old": 1, "New": 2} {
		bubble(t, func(t *testing.T) {
			var events []request.Event
			journal := observed(func(r *request.Event) { events = append(events, *r) })
			e := confirming(t, Options{ExecWait: 20 * time.Second, Journal: journal}, conf.ConfirmAll, piped(t, "fake", tool("Old")))
			asked := 0
			client := &caller.Client{ID: "1", Version: "2025-11-25", Capabilities: json.RawMessage(`{"elicitation":{}}`)}
			client.Request = func(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
				if asked++; asked == 1 {
					next := piped(t, "fake", tool(now))
					next.Definition = "another"
					<-time.After(10 * time.Minute)
					e.registry.Apply([]registry.Server{next}, registry.Options{Rules: confirmed(conf.ConfirmAll)}, nil)
				}
				return json.RawMessage(`{"action":"accept","content":{"run":true}}`), nil
			}
			got := by(t, e, Request{From: request.From{Client: client}, Server: "fake", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)})
			if said(t, got) != "x" || asked != want {
				t.Errorf("%s: asked %d times, want %d; got %s", now, asked, want, got.Content)
			}
			if len(events) != 1 || events[0].Confirming != user || events[0].Duration != 5*time.Second ||
				events[0].Upstream >= time.Second {
				t.Errorf("%s: %+v", now, events)
			}
		})
	}
}
