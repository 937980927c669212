package executor

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"mcpx/internal/tokens"
)

// The outcomes of a call beside the codes of its failures.
const (
	outcomeResult    = "RESULT"
	outcomeToolError = "TOOL_ERROR" // a result that the tool calls an error
	outcomeCancelled = "CANCELLED"
)

// Record is what happened in one call.
type Record struct {
	Principal, Server, Tool string
	// Outcome is RESULT, TOOL_ERROR, CANCELLED, or the code of a failure.
	Outcome string
	// Answered says that an upstream answered the call with a result.
	Answered bool
	Duration time.Duration
	// Received and Sent are what the upstream's texts would have cost the model as
	// they came, and what the answer does: estimates of o200k tokens.
	Received, Sent int
}

// observe hears of every call when it ends, once. Whatever counts, logs or audits
// calls hears of them here.
func (e *Executor) observe(ctx context.Context, r Record) {
	if r.Answered {
		e.account.add(r)
	}
	if e.log.Enabled(ctx, slog.LevelDebug) {
		e.log.LogAttrs(ctx, slog.LevelDebug, "call", slog.String("server", r.Server), slog.String("tool", r.Tool),
			slog.String("outcome", r.Outcome), slog.Duration("duration", r.Duration),
			slog.Int("tokens_received", r.Received), slog.Int("tokens_sent", r.Sent))
	}
}

// Account says what results cost the model: as estimates of o200k tokens.
type Account struct {
	Calls int64 `json:"calls"`
	// Received is what the upstreams' content would have cost as it came.
	Received int64 `json:"tokens_received"`
	// Sent is what was sent instead.
	Sent int64 `json:"tokens_sent"`
}

// account sums up by server. Safe for concurrent use.
type account struct {
	mu       sync.Mutex
	byServer map[string]Account
}

// add counts a call that has a result.
func (a *account) add(r Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byServer == nil {
		a.byServer = make(map[string]Account)
	}
	sum := a.byServer[r.Server]
	sum.Calls++
	sum.Received += int64(r.Received)
	sum.Sent += int64(r.Sent)
	a.byServer[r.Server] = sum
}

// Accounts is the account of each server since the start.
func (e *Executor) Accounts() map[string]Account {
	e.account.mu.Lock()
	defer e.account.mu.Unlock()
	return maps.Clone(e.account.byServer)
}

// roughly estimates tokens for the account: of a long text by a few samples, as
// nothing is decided by it.
func roughly(texts ...string) int {
	n := 0
	for _, text := range texts {
		n += tokens.Sample(text, 8, 512)
	}
	return n
}
