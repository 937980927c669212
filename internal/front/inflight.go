package front

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"mcpx/internal/wire"
)

// inflight is the requests of one client that are open. Those with one key are all
// answered, and all cancelled by it. The zero value is ready.
type inflight struct {
	mu     sync.Mutex
	open   map[*openRequest]struct{}
	idle   time.Time // when the last one ended; zero before that
	ended  error     // why no request is begun any more; nil = they are
	ending error     // the same for requests that last
}

// openRequest is a request from begin to done.
type openRequest struct {
	key       string
	cancel    context.CancelCauseFunc
	lasts     bool
	cancelled bool // by the client; under the lock
}

// begin puts a request in, whose context is one of ctx; done must follow. Where no
// more requests are begun it is cancelled from the first.
func (o *inflight) begin(ctx context.Context, key string, lasts bool) (context.Context, *openRequest) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &openRequest{key: key, cancel: cancel, lasts: lasts}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = make(map[*openRequest]struct{})
	}
	o.open[r] = struct{}{}
	if why := o.ended; why != nil {
		cancel(why)
	} else if lasts && o.ending != nil {
		cancel(o.ending)
	}
	return ctx, r
}

// done takes a request out and releases its context.
func (o *inflight) done(r *openRequest) {
	o.mu.Lock()
	delete(o.open, r)
	o.idle = time.Now()
	o.mu.Unlock()
	r.cancel(nil)
}

// wanted reports whether the client still waits for the answer.
func (o *inflight) wanted(r *openRequest) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !r.cancelled
}

// cancelled takes a notifications/cancelled.
func (o *inflight) cancelled(m *message) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(orEmpty(m.Params), &p) != nil {
		return
	}
	key := keyOf(p.ID)
	o.mu.Lock()
	defer o.mu.Unlock()
	for r := range o.open {
		if r.key == key {
			r.cancelled = true
			r.cancel(nil)
		}
	}
}

// end cancels the open requests, or only those that last, and those to come.
func (o *inflight) end(lastingOnly bool, why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ending = why
	if !lastingOnly {
		o.ended = why
	}
	for r := range o.open {
		if r.lasts || !lastingOnly {
			r.cancel(why)
		}
	}
}

// idleSince reports whether no request is open, and none was since then.
func (o *inflight) idleSince(then time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.open) == 0 && o.idle.Before(then)
}

// keyOf is the same for all ways to write an id: a string may be escaped.
func keyOf(id json.RawMessage) string {
	written := string(id)
	if !strings.Contains(written, `\`) {
		return written
	}
	text, _ := wire.Text(id)
	return `"` + text + `"`
}
