package front

import "sync"

// changes tells its subscribers that the tools have changed. Legacy sessions and
// subscriptions of the modern era subscribe alike. The zero value is ready.
type changes struct {
	mu          sync.Mutex
	subscribers map[chan struct{}]struct{}
}

// subscribe returns a channel that holds one value when the tools have changed,
// however often they did. The caller must unsubscribe.
func (c *changes) subscribe() chan struct{} {
	changed := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subscribers == nil {
		c.subscribers = make(map[chan struct{}]struct{})
	}
	c.subscribers[changed] = struct{}{}
	return changed
}

func (c *changes) unsubscribe(changed chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.subscribers, changed)
}

func (c *changes) announce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for changed := range c.subscribers {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}
