package transport

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"mcpx/internal/base/wire"
)

// An answer is returned even if the caller leaves at the same moment.
func TestAnswerAndCancellationTogether(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for id := range int64(100) {
		m := newMux()
		p, _, err := m.register(Outgoing{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		m.resolve(id, answer{message: wire.Message{Result: json.RawMessage(`{}`)}})
		if _, err := m.wait(ctx, p); err != nil {
			t.Fatalf("an answer and a cancellation: got %v", err)
		}
	}
	m := newMux()
	p, _, err := m.register(Outgoing{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.wait(ctx, p); !errors.Is(err, context.Canceled) || len(m.pending) != 0 {
		t.Errorf("no answer: got %v, %d are waited for", err, len(m.pending))
	}
}
