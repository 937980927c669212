package executor

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/upstream"
)

// confirming starts servers, of which the calls of fake must be confirmed.
func confirming(t testing.TB, options Options, confirm policy.Confirm, servers ...registry.Server) *Executor {
	t.Helper()
	e := executing(t, options, nil, servers...)
	rules := &policy.Rules{Servers: map[string]policy.ServerRules{"fake": {Confirm: confirm}}}
	e.registry.Apply(servers, registry.Options{Rules: rules}, nil)
	return e
}

// A client of the modern era answers what a server wants to know by the same call again,
// unless a person had to let the call pass: they are not asked for that twice.
func TestConfirmed_Input(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, confirm := range []policy.Confirm{policy.ConfirmNone, policy.ConfirmAll} {
		e := confirming(t, Options{}, confirm, piped(t, "fake", mcptest.Spec{Era: mcptest.EraModern}))
		var asked []string
		client := &caller.Client{ID: "1", Version: "2026-07-28", Capabilities: json.RawMessage(`{"elicitation":{}}`)}
		client.Request = func(_ context.Context, _ string, params json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
			asked = append(asked, string(params))
			return json.RawMessage(`{"action":"accept","content":{"word":"mellon"}}`), nil
		}
		got, err := e.Exec(t.Context(), Request{From: request.From{Client: client}, Server: "fake", Tool: "ask"})
		switch {
		case err != nil:
			t.Error(err)
		case confirm == policy.ConfirmNone:
			if len(asked) != 0 || !strings.Contains(string(got.Whole), "Which word?") {
				t.Errorf("asked %q, got %+v", asked, got)
			}
		case len(asked) != 2 || !strings.Contains(asked[0], "Run fake.ask?") || !strings.Contains(asked[1], "Which word?") || got.IsError || got.Whole != nil:
			t.Errorf("asked %q, got %+v", asked, got)
		}
	}
}

// TestConfirmed_late: what was hidden while the person thought does not run.
func TestConfirmed_late(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	servers := []registry.Server{{Spec: upstream.Spec{Name: "fake", Type: upstream.HTTP, URL: fake.URL}, Definition: fake.URL}}
	e := confirming(t, Options{}, policy.ConfirmAll, servers...)
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
		return json.RawMessage(`{"action":"accept"}`), nil
	}
	call := Request{From: request.From{Client: client}, Server: "fake", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)}
	if got := exec(t, e, call); got.IsError {
		t.Errorf("got %s", got.Content)
	}
	hide = true
	if got := exec(t, e, call); got.code != CodeToolNotFound {
		t.Errorf("got %s", got.Content)
	}
	if calls := fake.Log().Calls("echo"); len(calls) != 1 {
		t.Errorf("%d calls", len(calls))
	}
}

// TestChanged: a call is judged by what its server lists now, not by the catalogue on disk
// that it began with.
func TestChanged(t *testing.T) {
	mcptest.NoLeaks(t)
	tool := func(description string) json.RawMessage {
		return json.RawMessage(`[{"name":"echo","description":"` + description + `","inputSchema":{"type":"object"}}]`)
	}
	for _, c := range []struct{ now, code string }{{"Old", ""}, {"New", ""}, {"Bad", CodeToolNotFound}} {
		fake := mcptest.Spec{Tools: tool("Old")}.HTTP(t)
		servers := []registry.Server{{Spec: upstream.Spec{Name: "fake", Type: upstream.HTTP, URL: fake.URL}, Definition: fake.URL, Key: registry.Key("fake")}}
		options := registry.Options{CacheDir: t.TempDir(), Rules: hiding(func(_ string, tool *catalog.Tool) bool { return tool.Description != "Bad" })}
		before := registry.New(servers, options)
		before.Start()
		before.WaitTried(t.Context())
		before.Close(time.Second)
		fake.SetTools(tool(c.now))
		r := registry.New(servers, options)
		e := New(r, Options{})
		seen := e.Catalogue(nil)
		if s, _ := seen.Server("fake"); len(s.Tools) != 1 {
			t.Fatalf("on disk: %+v", s)
		}
		r.Start()
		got := exec(t, e, Request{Catalogue: seen, Server: "fake", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)})
		if got.code != c.code {
			t.Errorf("%s: %s", c.now, got.Content)
		}
		if calls := fake.Log().Calls("echo"); len(calls) != 0 && c.code != "" {
			t.Errorf("%s: %d calls", c.now, len(calls))
		}
		r.Close(time.Second)
	}
}

// TestConfirmed_Unanswered: a client that never answers does not confirm, and its call ends.
func TestConfirmed_Unanswered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := confirming(t, Options{Servers: map[string]ServerOptions{"fake": {CallTimeout: time.Second}}}, policy.ConfirmAll, piped(t, "fake", mcptest.Spec{}))
		client := &caller.Client{ID: "1", Version: "2025-11-25", Capabilities: json.RawMessage(`{"elicitation":{}}`)}
		client.Request = func(ctx context.Context, _ string, _ json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began := time.Now()
		got := exec(t, e, Request{From: request.From{Client: client}, Server: "fake", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)})
		if text := said(t, got); !got.IsError || !strings.Contains(text, "did not confirm the call of fake.echo within 15m0s; it was not made") || time.Since(began) != answerWithin {
			t.Errorf("after %s: %s", time.Since(began), text)
		}
	})
}
