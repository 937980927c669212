package page

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/request"
)

const (
	// maxCalls is the maximum number of calls that are kept. After that, a new call replaces the oldest.
	maxCalls = 500
	// maxErrorText is the maximum length, in characters, of an error text that is kept. maxContent is the maximum length, in bytes,
	// of the arguments of a call that are kept, and also of its result.
	maxErrorText, maxContent = 300, 8 << 10
)

// Calls keeps the newest calls for the page. The zero value is ready. It may be used by several goroutines at the same time.
type Calls struct {
	mu   sync.Mutex
	full bool
	ring [maxCalls]recentCall
	next int64 // the number of calls so far
}

// recentCall is a call in the form in which the page gets it.
type recentCall struct {
	N            int64     `json:"n"`
	Time         time.Time `json:"time"`
	Server       string    `json:"server"`
	Tool         string    `json:"tool"`
	Client       string    `json:"client,omitempty"`
	Principal    string    `json:"principal,omitempty"`
	Display      string    `json:"display,omitempty"`
	Outcome      string    `json:"outcome"`
	Failed       bool      `json:"failed"`
	Milliseconds int64     `json:"milliseconds"`
	Received     int       `json:"received"`
	Sent         int       `json:"sent"`
	Error        string    `json:"error,omitempty"`
	Arguments    string    `json:"arguments,omitempty"`
	Result       string    `json:"result,omitempty"`
}

// KeepContent sets whether the arguments and results of later calls are kept. If keep is false, it also removes those of the calls
// that are kept already.
func (c *Calls) KeepContent(keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.full = keep
	for i := range c.ring {
		if !keep {
			c.ring[i].Arguments, c.ring[i].Result = "", ""
		}
	}
}

func (c *Calls) mode() string {
	if c == nil {
		return "names"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full {
		return "full"
	}
	return "names"
}

// Add keeps a call that has ended. strike removes secrets from a text. Add ignores messages that are not calls, and calls that were
// cancelled before mcpx sent them to their server.
func (c *Calls) Add(r *request.Event, strike func(string) string) {
	if !r.Attempted || !r.IsCall() || r.Cancelled() && r.Upstream == 0 {
		return
	}
	one := recentCall{
		Time: r.Began.UTC(), Server: sanitize.Line(r.Server, 100), Tool: sanitize.Line(r.Tool, 200),
		Client: sanitize.Line(r.Client, 80), Principal: r.Principal, Display: sanitize.Line(r.Display, 100),
		Outcome: r.Outcome, Failed: r.Failed(),
		Milliseconds: r.Duration.Milliseconds(), Received: r.Received, Sent: r.Sent,
	}
	if r.Said != "" {
		one.Error = sanitize.Line(strike(r.Said), maxErrorText)
	}
	c.mu.Lock()
	full := c.full && r.Content != nil
	c.mu.Unlock()
	if full {
		arguments, result := r.Content()
		one.Arguments, one.Result = shortened(strike(arguments)), shortened(strike(result))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.full { // KeepContent(false) was called meanwhile
		one.Arguments, one.Result = "", ""
	}
	one.N = c.next
	c.ring[c.next%maxCalls] = one
	c.next++
}

// shortened cuts a text after at most maxContent bytes, between two characters.
func shortened(text string) string {
	if len(text) <= maxContent {
		return text
	}
	for cut := maxContent; ; cut-- {
		if text[cut]&0xC0 != 0x80 { // the byte at cut begins a character
			return text[:cut] + "…"
		}
	}
}

// since returns the calls whose numbers are n or higher, newest first. next is the number of the next call.
func (c *Calls) since(n int64) (calls []recentCall, next int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls = []recentCall{}
	for at := max(n, c.next-maxCalls, 0); at < c.next; at++ {
		calls = append(calls, c.ring[at%maxCalls])
	}
	slices.Reverse(calls)
	return calls, c.next
}

// sendCalls responds with the recent calls whose numbers are not below the parameter after.
func (p *Page) sendCalls(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64) // if the number is invalid, all calls are sent
	calls, next := p.Calls.since(after)
	httpd.WriteJSON(w, http.StatusOK, map[string]any{"calls": calls, "next": next, "mode": p.Calls.mode()})
}
