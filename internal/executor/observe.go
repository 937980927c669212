package executor

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/tokens"
)

// The outcomes of a call, beside the codes of failures.
const (
	outcomeResult    = "RESULT"
	outcomeToolError = "TOOL_ERROR" // a result with isError
	outcomeCancelled = "CANCELLED"
	outcomeRunning   = "STILL_RUNNING" // of wait_result: the call goes on
)

// Record describes one call. Server and Tool are as the client wrote them: foreign text
// unless Known.
type Record struct {
	// Number is another one for each call of this process.
	Number uint64
	// Principal is the ID of the caller's principal, Client the name that its program gave
	// itself; both may be empty.
	Principal, Client string
	Server, Tool      string
	// Method is that of a request which is no call of a tool, and has neither of the two;
	// empty for a call. Only the log and the audit trail hear of such.
	Method string
	// KnownServer and Known mean that the caller's catalogue has the server, and the tool.
	// ReadOnly means that the tool is declared read-only.
	KnownServer, Known, ReadOnly bool
	// Outcome is RESULT, TOOL_ERROR, CANCELLED, STILL_RUNNING, or the code of a failure;
	// empty while the call runs.
	Outcome string
	// Admitted means that [Options.Admit] was asked.
	Admitted bool
	// Answered means that an upstream answered with a result.
	Answered bool
	Began    time.Time
	// Duration is that of the whole call, Upstream the part of it that mcpx spent on the
	// upstream: waiting for a session and for the answer. Upstream is 0 if nothing was asked.
	Duration, Upstream time.Duration
	// Received are the tokens of the upstream's texts, Sent those of the answer:
	// estimates of o200k tokens.
	Received, Sent int
	// ArgumentBytes, ReceivedBytes and SentBytes are the sizes of the arguments, of the
	// upstream's result and of the answer's content, as JSON.
	ArgumentBytes, ReceivedBytes, SentBytes int
	// Asked is when mcpx first turned to the upstream; zero if it did not.
	Asked time.Time
	// Trace is the trace that the call belongs to: 32 hex digits, or empty. Spans are its
	// spans in there, nil where nobody samples them.
	Trace string
	Spans *Spans
}

// Failed reports whether the call ended in an error, be it the tool's, the server's or
// that of mcpx.
func (r *Record) Failed() bool {
	return r.Outcome != outcomeResult && r.Outcome != outcomeCancelled && r.Outcome != outcomeRunning
}

// Cancelled reports whether the caller took the call back.
func (r *Record) Cancelled() bool { return r.Outcome == outcomeCancelled }

// observe gets every call once, when it ends. It is the one place that counts calls and
// tells the observers of them.
func (e *Executor) observe(r Record) {
	if r.Answered {
		e.account.add(r)
	}
	for _, tell := range e.observers {
		tell(r)
	}
}

// admitted asks whether a call may be made. One that is attempted again, as its server was
// replaced, is not asked about again.
func (e *Executor) admitted(r *Request) error {
	if e.admit == nil || r.record.Admitted {
		return nil
	}
	r.record.Admitted = true
	return e.admit(*r.record)
}

// LogCalls is an observer that logs each call, on one line: never arguments, results or
// credentials.
func LogCalls(log *slog.Logger, level slog.Level) func(Record) {
	return func(r Record) {
		if !log.Enabled(context.Background(), level) {
			return
		}
		var room [14]slog.Attr // as many as there can be, on the stack
		attributes := room[:0]
		if r.Method == "" {
			attributes = append(attributes, slog.String("server", sanitize.Line(r.Server, maxLogged)), slog.String("tool", sanitize.Line(r.Tool, maxLogged)))
		} else {
			attributes = append(attributes, slog.String("method", sanitize.Line(r.Method, maxLogged)))
		}
		attributes = append(attributes,
			slog.String("outcome", r.Outcome), slog.Duration("duration", r.Duration), slog.Duration("upstream", r.Upstream),
			slog.Int("tokens_received", r.Received), slog.Int("tokens_sent", r.Sent),
			slog.Int("argument_bytes", r.ArgumentBytes), slog.Int("bytes_received", r.ReceivedBytes), slog.Int("bytes_sent", r.SentBytes))
		for _, one := range [...]struct{ name, value string }{{"principal", r.Principal}, {"client", sanitize.Line(r.Client, maxLogged)}, {"trace", r.Trace}} {
			if one.value != "" {
				attributes = append(attributes, slog.String(one.name, one.value))
			}
		}
		line := slog.NewRecord(r.Began.Add(r.Duration), level, "call", 0) // Logger would look for the place in the code
		line.AddAttrs(attributes...)
		_ = log.Handler().Handle(context.Background(), line)
	}
}

// maxLogged bounds the names that clients give, in characters.
const maxLogged = 80

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
	byServer map[string]*Account
}

// add counts a call that has a result.
func (a *account) add(r Record) {
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

// Accounts is the account of each server since the start.
func (e *Executor) Accounts() map[string]Account {
	e.account.mu.Lock()
	defer e.account.mu.Unlock()
	sums := make(map[string]Account, len(e.account.byServer))
	for server, sum := range e.account.byServer {
		sums[server] = *sum
	}
	return sums
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
