package executor

import (
	"context"
	"log/slog"
	"sync"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/request"
)

// LogEvents returns an observer that logs each message to a server as one record, without arguments, results or credentials.
func LogEvents(log *slog.Logger, level slog.Level) func(*request.Event) {
	return func(r *request.Event) {
		if !r.Attempted || !log.Enabled(context.Background(), level) {
			return
		}
		var room [17]slog.Attr // allocated on the stack; no record has more than 17 attributes
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
		if r.Program > 0 {
			attributes = append(attributes, slog.Uint64("program", r.Program))
		}
		if n := len(r.Costs); n > 0 {
			attributes = append(attributes, slog.Int("calls", n))
		}
		// Logger.Log would spend time on looking up the caller's source position
		line := slog.NewRecord(r.Began.Add(r.Duration), level, "call", 0)
		line.AddAttrs(attributes...)
		_ = log.Handler().Handle(context.Background(), line)
	}
}

// serverOf returns the server of a message that is not a call. For a call it returns "", because LogEvents has already added
// it.
func serverOf(r *request.Event) string {
	if r.IsCall() {
		return ""
	}
	return sanitize.Line(r.Server, maxLogged)
}

// maxLogged is to how many characters names chosen by clients are cut.
const maxLogged = 80

// Account sums up the tokens of results, in estimated o200k tokens.
type Account struct {
	Calls int64 `json:"calls"`
	// Received is the number of tokens in the texts that the servers sent.
	Received int64 `json:"tokens_received"`
	// Sent is the number of tokens in the answers to clients.
	Sent int64 `json:"tokens_sent"`
}

// Add adds the numbers of another account to a.
func (a *Account) Add(other Account) {
	a.Calls += other.Calls
	a.Received += other.Received
	a.Sent += other.Sent
}

// account has an Account for each server. It is safe for concurrent use.
type account struct {
	mu       sync.Mutex
	byServer map[string]*Account
}

// Count is an observer that adds each answered call to the account of its server.
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

// Accounts returns the account of each server, from the start of mcpx until now.
func (e *Executor) Accounts() map[string]Account {
	e.account.mu.Lock()
	defer e.account.mu.Unlock()
	sums := make(map[string]Account, len(e.account.byServer))
	for server, sum := range e.account.byServer {
		sums[server] = *sum
	}
	return sums
}
