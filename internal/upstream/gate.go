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
	place := g.line()
	if place == nil {
		return nil
	}
	return g.wait(ctx, place, nil)
}

// line gets in line. The place is nil where there is room: the caller is in. Else it
// has to call wait.
func (g *Gate) line() *list.Element {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queue.Len() == 0 && (g.limit <= 0 || g.open < g.limit) {
		g.open++
		return nil
	}
	return g.queue.PushBack(make(chan struct{}))
}

// wait waits until the place in line has become one inside, at most until ctx ends. A
// signal on hurry, which may be nil, moves it to the front.
func (g *Gate) wait(ctx context.Context, place *list.Element, hurry <-chan struct{}) error {
	admitted := place.Value.(chan struct{})
	for {
		select {
		case <-admitted:
			return nil
		case <-hurry:
			g.mu.Lock()
			g.queue.MoveToFront(place)
			g.mu.Unlock()
			continue
		case <-ctx.Done():
		}
		break
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

// exceed enters without a wait, over the limit where that must be.
func (g *Gate) exceed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open++
}

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	g.admit()
}
