package front

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"mcpx/internal/wire"
)

// openRequests are the requests of one client that are under way, by their raw
// ids. A client that uses an id twice has two of them: both are answered, and
// both are cancelled by that id. The zero value is ready.
type openRequests struct {
	mu   sync.Mutex
	byID map[string][]*openRequest
}

// openRequest is a request under way, from begin to end.
type openRequest struct {
	id     string
	cancel context.CancelFunc
	taken  bool // taken back by the client; under the set's lock
}

// begin puts a request in; end must follow.
func (o *openRequests) begin(id json.RawMessage, cancel context.CancelFunc) *openRequest {
	r := &openRequest{id: sameID(id), cancel: cancel}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byID == nil {
		o.byID = make(map[string][]*openRequest)
	}
	o.byID[r.id] = append(o.byID[r.id], r)
	return r
}

// end takes a request out and releases its context.
func (o *openRequests) end(r *openRequest) {
	o.mu.Lock()
	rest := slices.DeleteFunc(o.byID[r.id], func(one *openRequest) bool { return one == r })
	if o.byID[r.id] = rest; len(rest) == 0 {
		delete(o.byID, r.id)
	}
	o.mu.Unlock()
	r.cancel()
}

// wanted reports whether the client still waits for the answer.
func (o *openRequests) wanted(r *openRequest) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !r.taken
}

// cancelled ends what the params of notifications/cancelled name.
func (o *openRequests) cancelled(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.byID[sameID(p.ID)] {
		r.taken = true
		r.cancel()
	}
}

// sameID is the same for all ways to write an id: a string may be escaped.
func sameID(id json.RawMessage) string {
	if text, ok := wire.Text(id); ok {
		return string(wire.Encode(text))
	}
	return string(id)
}
