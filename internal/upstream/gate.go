package upstream

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// Gate bounds how many calls are under way at once, of one upstream, of several
// together, or of one caller. Those beyond it wait, first come first served. The zero
// value has no limit. Safe for concurrent use.
type Gate struct {
	mu    sync.Mutex
	limit int       // 0 = none
	most  Queue     // bounds queue
	open  int       // calls under way
	queue list.List // of chan struct{}, closed when its call may go on
}

// Queue bounds the calls that wait before a gate. The zero value bounds nothing.
type Queue struct {
	// Calls is how many may wait; 0 = any number, less than 0 = none.
	Calls int
	// Wait is how long each may wait; 0 = as long as its context lasts.
	Wait time.Duration
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

// SetQueue changes the bounds of the queue. Calls that wait keep theirs.
func (g *Gate) SetQueue(most Queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.most = most
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

// Enter waits for room, at most until ctx ends, and no longer than the queue allows; Leave
// gives it back. The error is a *BusyError.
func (g *Gate) Enter(ctx context.Context) error {
	g.mu.Lock()
	most, free := g.most, g.free()
	if !free && most.Calls != 0 && g.queue.Len() >= most.Calls {
		defer g.mu.Unlock()
		return &BusyError{Open: g.open, Refused: true}
	}
	place := g.place(free)
	g.mu.Unlock()
	if place == nil {
		return nil
	}
	bounded := ctx
	if most.Wait > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, most.Wait)
		defer cancel()
	}
	err := g.wait(bounded, place, nil)
	if busy, ok := errors.AsType[*BusyError](err); ok {
		busy.Refused = ctx.Err() == nil
	}
	return err
}

// line gets in line, however long that is. The place is nil where there is room: the
// caller is in. Else it has to call wait.
func (g *Gate) line() *list.Element {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.place(g.free())
}

// free reports whether a call may go on at once. The caller holds the lock.
func (g *Gate) free() bool { return g.queue.Len() == 0 && (g.limit <= 0 || g.open < g.limit) }

// place is that of a call in line; nil where it may go on at once. The caller holds the lock.
func (g *Gate) place(free bool) *list.Element {
	if free {
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

// Leave gives back what Enter took.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	g.admit()
}
