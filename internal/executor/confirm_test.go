package executor

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/upstream"
)

// A client of the modern era answers what a server wants to know by the same call again,
// unless a person had to let the call pass: they are not asked for that twice.
func TestConfirmed_Input(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, confirm := range []policy.Confirm{policy.ConfirmNone, policy.ConfirmAll} {
		e := executing(t, Options{Servers: map[string]ServerOptions{"fake": {Confirm: confirm}}}, nil, piped(t, "fake", mcptest.Spec{Era: mcptest.EraModern}))
		var asked []string
		client := &upstream.Client{ID: "1", Version: "2026-07-28", Capabilities: json.RawMessage(`{"elicitation":{}}`)}
		client.Request = func(_ context.Context, _ string, params json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
			asked = append(asked, string(params))
			return json.RawMessage(`{"action":"accept","content":{"word":"mellon"}}`), nil
		}
		got, err := e.Exec(t.Context(), Request{Server: "fake", Tool: "ask", Client: client})
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
