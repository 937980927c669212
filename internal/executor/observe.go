package executor

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"mcpx/internal/tokens"
)

// The outcomes of a call, beside the codes of failures.
const (
	outcomeResult    = "RESULT"
	outcomeToolError = "TOOL_ERROR" // a result with isError
	outcomeCancelled = "CANCELLED"
	outcomeRunning   = "STILL_RUNNING" // of wait_result: the call goes on
)

// Record describes one call after its end.
type Record struct {
	Principal, Server, Tool string
	// Outcome is RESULT, TOOL_ERROR, CANCELLED, STILL_RUNNING, or the code of a failure.
	Outcome string
	// Answered means that an upstream answered with a result.
	Answered bool
	Duration time.Duration
	// Received are the tokens of the upstream's texts, Sent those of the answer:
	// estimates of o200k tokens.
	Received, Sent int
}

// observe gets every call once, when it ends. It is the one place that counts and
// logs calls.
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

// Account sums up the tokens of results: estimates of o200k tokens.
type Account struct {
	Calls int64 `json:"calls"`
	// Received are the tokens of the upstreams' texts.
	Received int64 `json:"tokens_received"`
	// Sent are the tokens of the answers.
	Sent int64 `json:"tokens_sent"`
}

// Add adds another account.
func (a *Account) Add(other Account) {
	a.Calls += other.Calls
	a.Received += other.Received
	a.Sent += other.Sent
}

// account has one Account for each server. Safe for concurrent use.
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
	sum.Add(Account{1, int64(r.Received), int64(r.Sent)})
	a.byServer[r.Server] = sum
}

// Accounts is the account of each server since the start.
func (e *Executor) Accounts() map[string]Account {
	e.account.mu.Lock()
	defer e.account.mu.Unlock()
	return maps.Clone(e.account.byServer)
}

// roughly estimates tokens for the account. It weighs long texts by a few samples:
// no decision depends on it.
func roughly(texts ...string) int {
	n := 0
	for _, text := range texts {
		n += tokens.Sample(text, 8, 512)
	}
	return n
}
