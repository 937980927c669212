package executor

import (
	"sync"

	"mcpx/internal/tokens"
	"mcpx/internal/wire"
)

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

// add counts one call.
func (a *account) add(server string, received, sent int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byServer == nil {
		a.byServer = make(map[string]Account)
	}
	sum := a.byServer[server]
	sum.Calls++
	sum.Received += int64(received)
	sum.Sent += int64(sent)
	a.byServer[server] = sum
}

// rough estimates tokens for the account: of a long text by a few samples, as
// nothing is decided by it.
func rough(text string) int {
	const windows, size = 8, 512
	if len(text) <= windows*size {
		return tokens.Estimate(text)
	}
	n, stride := 0, len(text)/windows
	for i := range windows {
		n += tokens.Estimate(text[i*stride : i*stride+size])
	}
	return n * len(text) / (windows * size)
}

// count weighs what was received against what is sent.
func (r *Result) count(received []wire.Block) {
	same := len(received) == len(r.Content)
	for i, b := range received {
		n := 0
		if b.HasText {
			n = rough(b.Text)
		}
		r.received += n
		if same && len(r.Content[i]) == len(b.Raw) {
			r.sent += n // untouched
		} else if same {
			r.sent += rough(wire.ReadBlock(r.Content[i]).Text)
		}
	}
	if !same {
		for _, raw := range r.Content {
			r.sent += rough(wire.ReadBlock(raw).Text)
		}
	}
}

// Accounts is the account of each server since the start.
func (e *Executor) Accounts() map[string]Account {
	e.account.mu.Lock()
	defer e.account.mu.Unlock()
	out := make(map[string]Account, len(e.account.byServer))
	for server, sum := range e.account.byServer {
		out[server] = sum
	}
	return out
}
