package front

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/lazyctx"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// inflight holds the open requests of one session, or those open requests of a front that belong to no session. If several requests
// have the same key, a cancellation with that key cancels all of them. The zero value is ready.
type inflight struct {
	mu     sync.Mutex
	open   map[*openRequest]struct{}
	held   int       // how many callers of hold still use the session
	idle   time.Time // when the session was made, its last open request ended, or free was called, whichever was latest
	ended  error     // if not nil, every new request is cancelled with this error
	ending error     // if not nil, new long-lived requests are cancelled with this error
}

// openRequest is a request for which the method begin has been called, and the method done has not.
type openRequest struct {
	lazyctx.Context
	key       string
	lasts     bool               // the request is long-lived: it sends notifications until it is ended
	who       *caller.Principal  // set only if lasts is true
	expired   context.CancelFunc // frees the timer for the credential's end; set only if lasts is true and the credential expires
	cancelled bool               // the client has cancelled the request; guarded by inflight.mu
}

// begin adds a request and returns its context, derived from ctx. The caller must call done. If end has ended all requests, or
// lasts is true and end has ended the long-lived requests, the context is already cancelled. A long-lived request ends when its
// credential expires.
func (o *inflight) begin(ctx context.Context, key string, lasts bool) (context.Context, *openRequest) {
	r := &openRequest{key: key, lasts: lasts}
	r.Begin(ctx)
	ctx = &r.Context
	if lasts {
		r.who = caller.From(ctx)
		if until := caller.Until(ctx); !until.IsZero() {
			ctx, r.expired = context.WithDeadlineCause(ctx, until, errExpired)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = make(map[*openRequest]struct{})
	}
	o.open[r] = struct{}{}
	if why := o.ended; why != nil {
		r.End(why)
	} else if lasts && o.ending != nil {
		r.End(o.ending)
	}
	return ctx, r
}

// done removes a request and releases its context.
func (o *inflight) done(r *openRequest) {
	o.mu.Lock()
	delete(o.open, r)
	if len(o.open) == 0 {
		o.idle = time.Now()
	}
	o.mu.Unlock()
	r.End(nil)
	if r.expired != nil {
		r.expired()
	}
}

// hold keeps the client's session from being ended as idle until free is called. It returns false if the session has ended.
func (o *inflight) hold() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.ended, errSessionEnded) {
		return false
	}
	o.held++
	return true
}

func (o *inflight) free() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held--
	o.idle = time.Now()
}

// wanted reports whether the client still wants the answer, that is, has not cancelled the request.
func (o *inflight) wanted(r *openRequest) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !r.cancelled
}

// cancelled handles notifications/cancelled. It reports whether the request to be cancelled is open.
func (o *inflight) cancelled(m *message) (found bool) {
	key := keyOf(wire.Member(m.Params, "requestId"))
	o.mu.Lock()
	defer o.mu.Unlock()
	for r := range o.open {
		if r.key == key {
			r.cancelled, found = true, true
			r.End(nil)
		}
	}
	return found
}

// end cancels the open requests and all later ones. If lastingOnly is true, it cancels only long-lived
// requests.
func (o *inflight) end(lastingOnly bool, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ending = cause
	if !lastingOnly {
		o.ended = cause
	}
	for r := range o.open {
		if r.lasts || !lastingOnly {
			r.End(cause)
		}
	}
}

// endWith cancels the requests in o, and later ones, in the same way as end has cancelled those in other. It does nothing if end
// has not been called on other.
func (o *inflight) endWith(other *inflight) {
	other.mu.Lock()
	ended, ending := other.ended, other.ending
	other.mu.Unlock()
	if ended != nil {
		o.end(false, ended)
	} else if ending != nil {
		o.end(true, ending)
	}
}

// endOf cancels the long-lived requests of principals for which the func isKnown returns false.
func (o *inflight) endOf(isKnown func(*caller.Principal) bool, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for r := range o.open {
		if r.lasts && !isKnown(r.who) {
			r.End(cause)
		}
	}
}

// endIdle ends the session if it is idle: since the given time no request was open, and no caller of hold used the session.
// Then endIdle returns true, and every later request is cancelled with the error cause. Otherwise endIdle does nothing.
func (o *inflight) endIdle(since time.Time, cause error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held > 0 || len(o.open) > 0 || !o.idle.Before(since) {
		return false
	}
	o.ended, o.ending = cause, cause
	return true
}

// keyOf turns a request id into a key. Ids that are the same string in different JSON escapes have the same key.
func keyOf(id json.RawMessage) string {
	written := string(id)
	if !strings.Contains(written, `\`) {
		return written
	}
	text, _ := wire.Text(id)
	return `"` + text + `"`
}
