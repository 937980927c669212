package front

import (
	"encoding/json"
	"slices"
	"sync"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/view"
)

// note is a notification that belongs to no request.
type note struct {
	method string
	of     string // the resource that it is about, empty if about none
	params json.RawMessage
	// unknown says that mcpx does not know what it means.
	unknown bool
}

// pending are the notes that a client has yet to get. However often a thing has changed,
// there is one note about it: so they need no bound.
type pending struct {
	due chan struct{} // holds one: there are notes

	mu    sync.Mutex
	notes []note
}

func newPending() *pending { return &pending{due: make(chan struct{}, 1)} }

// mostUnknown bounds the notes that mcpx does not know, of which none takes the place of
// another.
const mostUnknown = 1000

// add adds a note in place of an earlier one about the same thing. It does not block.
func (n *pending) add(one note) {
	n.mu.Lock()
	at := -1
	if !one.unknown {
		at = slices.IndexFunc(n.notes, func(o note) bool { return o.method == one.method && o.of == one.of })
	}
	switch {
	case one.unknown && len(n.notes) >= mostUnknown:
	case at < 0:
		n.notes = append(n.notes, one)
	default:
		n.notes[at] = one
	}
	n.mu.Unlock()
	select {
	case n.due <- struct{}{}:
	default:
	}
}

// take returns the notes, and forgets them.
func (n *pending) take() []note {
	n.mu.Lock()
	defer n.mu.Unlock()
	notes := n.notes
	n.notes = nil
	return notes
}

// changes tells its subscribers which lists have changed. Legacy sessions and
// subscriptions of the modern era subscribe alike. The zero value is ready.
type changes struct {
	mu          sync.Mutex
	subscribers map[*pending]struct{}
}

// subscribe returns news that the changes of lists are added to. The caller must
// unsubscribe.
func (c *changes) subscribe() *pending {
	n := newPending()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subscribers == nil {
		c.subscribers = make(map[*pending]struct{})
	}
	c.subscribers[n] = struct{}{}
	return n
}

// pendingFor returns the pending notifications of a client, until the caller calls stop. A principal hears of what it
// may see alone; a client that sees everything hears what all others do.
func (f *Front) pendingFor(client *caller.Client) (n *pending, stop func()) {
	if client.Principal == nil {
		n = f.changes.subscribe()
		return n, func() { f.changes.unsubscribe(n) }
	}
	n = newPending()
	return n, f.view.Attach(client, view.Attachment{Changed: n.changed, Unknown: n.pass})
}

func (n *pending) changed(kind catalog.Kind) { n.add(note{method: kind.Changed()}) }

func (n *pending) pass(method string, params json.RawMessage) {
	n.add(note{method: method, params: params, unknown: true})
}

func (c *changes) unsubscribe(n *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.subscribers, n)
}

func (c *changes) announce(kind catalog.Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range c.subscribers {
		n.changed(kind)
	}
}

// pass tells all subscribers of a notification that mcpx does not know.
func (c *changes) pass(method string, params json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range c.subscribers {
		n.pass(method, params)
	}
}
