package upstream

import (
	"container/list"
	"context"
	"sync"
)

// Gate bounds how many calls are under way at once, of one upstream or of
// several together. Those beyond it wait, first come first served. The zero
// value has no limit. Safe for concurrent use.
type Gate struct {
	mu    sync.Mutex
	limit int       // 0 = none
	open  int       // calls under way
	queue list.List // of chan struct{}, closed when its call may go on
}

// NewGate makes a gate for so many calls; 0 = no limit.
func NewGate(limit int) *Gate { return &Gate{limit: limit} }

// SetLimit changes the limit; 0 = none. Calls that are under way stay so.
func (g *Gate) SetLimit(limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = limit
	g.admit()
}

// admit lets in the calls that wait, as far as there is room. The caller holds the lock.
func (g *Gate) admit() {
	for g.limit <= 0 || g.open < g.limit {
		first := g.queue.Front()
		if first == nil {
			return
		}
		g.open++
		close(g.queue.Remove(first).(chan struct{}))
	}
}

// enter waits for room, at most until ctx ends; leave gives it back. The error
// says how many calls were in the way.
func (g *Gate) enter(ctx context.Context) error {
	g.mu.Lock()
	if g.queue.Len() == 0 && (g.limit <= 0 || g.open < g.limit) {
		g.open++
		g.mu.Unlock()
		return nil
	}
	admitted := make(chan struct{})
	place := g.queue.PushBack(admitted)
	g.mu.Unlock()
	select {
	case <-admitted:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-admitted: // at the same moment
		g.open--
		g.admit()
	default:
		g.queue.Remove(place)
	}
	return &BusyError{Open: g.open}
}

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	g.admit()
}
