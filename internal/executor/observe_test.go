package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/wire"
)

// Every call is heard of once when it ends, however it does; the account has those
// that an upstream answered.
func TestObserve(t *testing.T) {
	mcptest.NoLeaks(t)
	long := strings.Repeat("A line of some words.\n", 200)
	fake := mcptest.Spec{Tools: json.RawMessage(`[{"name":"echo"},{"name":"fail"},{"name":"slow"},{"name":"crash"},{"name":"long"},{"name":"table"}]`), Results: map[string]json.RawMessage{
		"long":  json.RawMessage(`{"content":[` + string(wire.TextBlock(long)) + `]}`),
		"table": json.RawMessage(`{"content":[` + string(wire.TextBlock(mcptest.TableText(20))) + `]}`),
	}}
	var lines bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	e := executing(t, Options{Logger: logger, ResultTokens: 200, TOON: true}, nil, piped(t, "one", fake))
	said := regexp.MustCompile(`msg=call server=(\S+) tool=(\S+) outcome=(\S+) duration=\S+ tokens_received=(\d+) tokens_sent=(\d+)`)
	for _, tt := range []struct {
		server, tool, outcome string
		answered              bool
		shape                 string // of the tokens
	}{
		{"one", "echo", "RESULT", true, "same"},
		{"one", "fail", "TOOL_ERROR", true, "same"},
		{"one", "long", "RESULT", true, "cut"},
		{"one", "table", "RESULT", true, "less"},
		{"one", "nobody", "TOOL_NOT_FOUND", false, "none"},
		{"mcpx", "read_result", "VALIDATION_ERROR", false, "none"},
		{"one", "crash", "CONNECTION_LOST", false, "none"},
	} {
		lines.Reset()
		before := e.Accounts()["one"]
		result := exec(t, e, Request{Server: tt.server, Tool: tt.tool, Arguments: json.RawMessage(`{"text":"some words","message":"no luck"}`)})
		after := e.Accounts()["one"]
		got := said.FindAllStringSubmatch(lines.String(), -1)
		if len(got) != 1 || !slices.Equal(got[0][1:4], []string{tt.server, tt.tool, tt.outcome}) {
			t.Errorf("%s.%s: %s", tt.server, tt.tool, lines.String())
			continue
		}
		if (after.Calls > before.Calls) != tt.answered || tt.answered && (after.Received-before.Received != int64(result.received) || after.Sent-before.Sent != int64(result.sent)) {
			t.Errorf("%s: account %+v, before %+v", tt.tool, after, before)
		}
		sent := 0
		for _, raw := range result.Content {
			sent += roughly(wire.ReadBlock(raw).Text)
		}
		if difference := sent - result.sent; difference > 2 || difference < -2 {
			t.Errorf("%s: %d tokens sent, counted %d", tt.tool, sent, result.sent)
		}
		if ok := map[string]bool{
			"same": result.received == result.sent && result.sent > 0, "cut": result.received > 500 && result.sent <= 200,
			"less": result.sent < result.received && result.sent > 0, "none": result.received == 0,
		}[tt.shape]; !ok {
			t.Errorf("%s: %d tokens received, %d sent", tt.tool, result.received, result.sent)
		}
	}

	lines.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Exec(ctx, Request{Server: "one", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)}); err == nil || !strings.Contains(lines.String(), "outcome=CANCELLED") {
		t.Errorf("%v, %s", err, lines.String())
	}
}
