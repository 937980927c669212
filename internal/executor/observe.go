package executor

import (
	"context"
	"log/slog"
	"sync"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/request"
)

// LogEvents is an observer that logs each message to a server on one line, without arguments, results or credentials.
func LogEvents(log *slog.Logger, level slog.Level) func(*request.Event) {
	return func(r *request.Event) {
		if !r.Attempted || !log.Enabled(context.Background(), level) {
			return
		}
		var room [15]slog.Attr // on the stack; no line has more attributes
		attributes := room[:0]
		if r.IsCall() {
			attributes = append(attributes,
				slog.String("server", sanitize.Line(r.Server, maxLogged)), slog.String("tool", sanitize.Line(r.Tool, maxLogged)))
		} else {
			attributes = append(attributes, slog.String("method", sanitize.Line(r.Method, maxLogged)))
		}
		attributes = append(attributes,
			slog.String("outcome", r.Outcome), slog.Duration("duration", r.Duration), slog.Duration("upstream", r.Upstream),
			slog.Int("tokens_received", r.Received), slog.Int("tokens_sent", r.Sent),
			slog.Int("argument_bytes", r.ArgumentBytes), slog.Int("bytes_received", r.ReceivedBytes), slog.Int("bytes_sent", r.SentBytes))
		for _, one := range [...]struct{ name, value string }{
			{"server", serverOf(r)}, {"item", sanitize.Line(r.Item, maxLogged)},
			{"principal", r.Principal}, {"client", sanitize.Line(r.Client, maxLogged)}, {"trace", r.Trace.ID},
		} {
			if one.value != "" {
				attributes = append(attributes, slog.String(one.name, one.value))
			}
		}
		line := slog.NewRecord(r.Began.Add(r.Duration), level, "call", 0) // Logger.Log would look up the caller's position
		line.AddAttrs(attributes...)
		_ = log.Handler().Handle(context.Background(), line)
	}
}

// serverOf returns the server of a message that is no call; empty for a call, which has it already.
func serverOf(r *request.Event) string {
	if r.IsCall() {
		return ""
	}
	return sanitize.Line(r.Server, maxLogged)
}

// maxLogged bounds names chosen by clients, in characters.
const maxLogged = 80

// Account sums the tokens of results: estimates of o200k tokens.
type Account struct {
	Calls int64 `json:"calls"`
	// Received counts the tokens of the upstreams' texts.
	Received int64 `json:"tokens_received"`
	// Sent counts the tokens of the answers.
	Sent int64 `json:"tokens_sent"`
}

// Add adds another account.
func (a *Account) Add(other Account) {
	a.Calls += other.Calls
	a.Received += other.Received
	a.Sent += other.Sent
}

// account holds an Account for each server. Safe for concurrent use.
type account struct {
	mu       sync.Mutex
	byServer map[string]*Account
}

// Count is an observer that adds each answered call to the accounts.
func (e *Executor) Count(r *request.Event) {
	if !r.Answered {
		return
	}
	a := &e.account
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byServer == nil {
		a.byServer = make(map[string]*Account)
	}
	sum := a.byServer[r.Server]
	if sum == nil {
		sum = &Account{}
		a.byServer[r.Server] = sum
	}
	sum.Add(Account{1, int64(r.Received), int64(r.Sent)})
}

// Accounts returns each server's account since the start.
func (e *Executor) Accounts() map[string]Account {
	e.account.mu.Lock()
	defer e.account.mu.Unlock()
	sums := make(map[string]Account, len(e.account.byServer))
	for server, sum := range e.account.byServer {
		sums[server] = *sum
	}
	return sums
}
