package transport

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
)

// TestLargeBatch: a batch with too many messages is skipped as a whole and logged; the answer to another request
// on the stream still arrives.
func TestLargeBatch(t *testing.T) {
	var logged strings.Builder
	m := newMux(slog.New(slog.NewTextHandler(&logged, nil)))
	one, _, _ := m.register(Outgoing{ID: 1})
	two, _, _ := m.register(Outgoing{ID: 2})
	delivered := 0
	in := func(wire.Message, int64) { delivered++ }
	const note = `{"jsonrpc":"2.0","method":"notifications/message"}`
	if m.deliver([]byte(`[{"jsonrpc":"2.0","id":1,"result":{}}`+strings.Repeat(","+note, 10_000)+`]`), in) || delivered != 0 || len(one.done) != 0 {
		t.Errorf("a batch of 10,001: %d notifications, %d answers", delivered, len(one.done))
	}
	if !strings.Contains(logged.String(), "a batch of more than 10000 messages") {
		t.Errorf("logged: %s", logged.String())
	}
	if !m.deliver([]byte(`[{"jsonrpc":"2.0","id":2,"result":{}}`+strings.Repeat(","+note, 9_999)+`]`), in) || delivered != 9_999 || len(two.done) != 1 {
		t.Errorf("a batch of 10,000: %d notifications, %d answers", delivered, len(two.done))
	}
}

// TestAnswerAndCancellationTogether: if the answer arrives at the moment when the caller cancels, the answer is
// returned.
func TestAnswerAndCancellationTogether(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for id := range int64(100) {
		m := newMux(slog.New(slog.DiscardHandler))
		p, _, err := m.register(Outgoing{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		m.resolve(id, answer{message: wire.Message{Result: json.RawMessage(`{}`)}})
		if _, err := m.wait(ctx, p); err != nil {
			t.Fatalf("an answer and a cancellation: got %v", err)
		}
	}
	m := newMux(slog.New(slog.DiscardHandler))
	p, _, err := m.register(Outgoing{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.wait(ctx, p); !errors.Is(err, context.Canceled) || len(m.pending) != 0 {
		t.Errorf("no answer: got %v, %d are waited for", err, len(m.pending))
	}
}
