package front

import (
	"encoding/json"
	"slices"
	"sync"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/view"
)

// note is a notification that is not part of a request, such as a list change.
type note struct {
	method string
	uri    string // the URI of the changed resource; empty for other notifications
	params json.RawMessage
	// unknown means that mcpx does not know the method. Such a note replaces no earlier note, because mcpx cannot tell what it is
	// about. Any other note replaces an earlier one about the same list or resource.
	unknown bool
}

// pending holds the notifications that a client has yet to receive. It keeps only the newest notification about each list and
// each resource, and at most maxUnknown notifications whose methods mcpx does not know.
type pending struct {
	due chan struct{} // has a buffer of one: a value means that there are notes

	mu      sync.Mutex
	notes   []note
	unknown int // how many of the notes have an unknown method
}

func newPending() *pending { return &pending{due: make(chan struct{}, 1)} }

// maxUnknown limits the pending notifications with unknown methods. When so many are pending, a new one is dropped. The limit is
// needed because no notification with an unknown method replaces another.
const maxUnknown = 1000

// add adds a note. It replaces an earlier note about the same list or resource, if there is one. If there are already maxUnknown
// notes with unknown methods, a new note with an unknown method is dropped. add does not block.
func (n *pending) add(one note) {
	n.mu.Lock()
	at := -1
	if !one.unknown {
		at = slices.IndexFunc(n.notes, func(o note) bool { return o.method == one.method && o.uri == one.uri })
	}
	switch {
	case one.unknown && n.unknown >= maxUnknown:
	case at < 0:
		n.notes = append(n.notes, one)
		if one.unknown {
			n.unknown++
		}
	default:
		n.notes[at] = one
	}
	n.mu.Unlock()
	n.signal()
}

// signal wakes the goroutine that sends the notes to the client (see follow), because there may be new notes.
func (n *pending) signal() {
	select {
	case n.due <- struct{}{}:
	default:
	}
}

// take returns all notes, and removes them.
func (n *pending) take() []note {
	n.mu.Lock()
	defer n.mu.Unlock()
	notes := n.notes
	n.notes, n.unknown = nil, 0
	return notes
}

// changes has the subscribers to changes of the catalogue. They are the clients without a principal, which all see the same tools.
// Each subscriber gets all changes, and also all notifications with unknown methods. Legacy sessions and modern subscriptions
// subscribe in the same way. The zero value is ready.
type changes struct {
	mu          sync.Mutex
	subscribers map[*pending]struct{}
}

// subscribe returns a new pending, to which all further changes are added until the caller calls stop.
func (c *changes) subscribe() (n *pending, stop func()) {
	n = newPending()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subscribers == nil {
		c.subscribers = make(map[*pending]struct{})
	}
	c.subscribers[n] = struct{}{}
	return n, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.subscribers, n)
	}
}

// each calls f for every subscriber. It holds the lock meanwhile, so f must not block.
func (c *changes) each(f func(*pending)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range c.subscribers {
		f(n)
	}
}

func (c *changes) announce(kind catalog.Kind) { c.each(func(n *pending) { n.changed(kind) }) }

func (c *changes) pass(method string, params json.RawMessage) {
	c.each(func(n *pending) { n.pass(method, params) })
}

// pendingFor returns the pending notifications of a client. Until the caller calls stop, further changes are added to them. For a
// client with a principal, only the changes that the principal can see are added.
func (f *Front) pendingFor(client *caller.Client) (n *pending, stop func()) {
	if client.Principal == nil {
		return f.changes.subscribe()
	}
	n = newPending()
	return n, f.view.Attach(client, view.Attachment{Changed: n.changed, Unknown: n.pass})
}

func (n *pending) changed(kind catalog.Kind) { n.add(note{method: kind.Changed()}) }

func (n *pending) pass(method string, params json.RawMessage) {
	n.add(note{method: method, params: params, unknown: true})
}
