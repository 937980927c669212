// Package semaphore bounds how many calls are under way at once, with a bounded queue of those that wait.
package semaphore

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Semaphore bounds how many calls are under way at once, of one upstream, of several
// together, or of one caller. Those beyond it wait, first come first served. The zero
// value has no limit. Safe for concurrent use.
type Semaphore struct {
	mu    sync.Mutex
	limit int       // 0 = none
	most  Queue     // bounds queue
	open  int       // calls under way
	queue list.List // of chan struct{}, closed when its call may go on
}

// Queue bounds the calls that wait for a semaphore. The zero value bounds nothing.
type Queue struct {
	// Calls is how many may wait; 0 = any number, less than 0 = none.
	Calls int
	// Wait is how long each may wait; 0 = as long as its context lasts.
	Wait time.Duration
}

// New makes a semaphore for so many calls; 0 = no limit.
func New(limit int) *Semaphore { return &Semaphore{limit: limit} }

// SetLimit changes the limit; 0 = none. Calls that are under way stay so.
func (s *Semaphore) SetLimit(limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit
	s.admit()
}

// SetQueue changes the bounds of the queue. Calls that wait keep theirs.
func (s *Semaphore) SetQueue(most Queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = most
}

// admit lets in the calls that wait, as far as there is room. The caller holds the lock.
func (s *Semaphore) admit() {
	for s.limit <= 0 || s.open < s.limit {
		first := s.queue.Front()
		if first == nil {
			return
		}
		s.open++
		close(s.queue.Remove(first).(chan struct{}))
	}
}

// Use returns how many calls are inside, and how many wait.
func (s *Semaphore) Use() (open, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, s.queue.Len()
}

// Enter waits for room, at most until ctx ends, and no longer than the queue allows; Leave
// gives it back. The error is a *BusyError.
func (s *Semaphore) Enter(ctx context.Context) error {
	s.mu.Lock()
	most, free := s.most, s.free()
	if !free && most.Calls != 0 && s.queue.Len() >= most.Calls {
		defer s.mu.Unlock()
		return &BusyError{Open: s.open, Refused: true}
	}
	place := s.place(free)
	s.mu.Unlock()
	if place == nil {
		return nil
	}
	bounded := ctx
	if most.Wait > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, most.Wait)
		defer cancel()
	}
	err := s.Await(bounded, place, nil)
	if busy, ok := errors.AsType[*BusyError](err); ok {
		busy.Refused = ctx.Err() == nil
	}
	return err
}

// line gets in line, however long that is. The place is nil where there is room: the
// caller is in. Else it has to call wait.
func (s *Semaphore) Join() *list.Element {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place(s.free())
}

// free reports whether a call may go on at once. The caller holds the lock.
func (s *Semaphore) free() bool { return s.queue.Len() == 0 && (s.limit <= 0 || s.open < s.limit) }

// place is that of a call in line; nil where it may go on at once. The caller holds the lock.
func (s *Semaphore) place(free bool) *list.Element {
	if free {
		s.open++
		return nil
	}
	return s.queue.PushBack(make(chan struct{}))
}

// wait waits until the place in line has become one inside, at most until ctx ends. A
// signal on hurry, which may be nil, moves it to the front.
func (s *Semaphore) Await(ctx context.Context, place *list.Element, hurry <-chan struct{}) error {
	admitted := place.Value.(chan struct{})
	for {
		select {
		case <-admitted:
			return nil
		case <-hurry:
			s.mu.Lock()
			s.queue.MoveToFront(place)
			s.mu.Unlock()
			continue
		case <-ctx.Done():
		}
		break
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-admitted: // at the same moment
		s.open--
		s.admit()
	default:
		s.queue.Remove(place)
	}
	return &BusyError{Open: s.open}
}

// exceed enters without a wait, over the limit where that must be.
func (s *Semaphore) Exceed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
}

// Leave gives back what Enter took.
func (s *Semaphore) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.admit()
}

// BusyError says that no place among the concurrent calls came free in time.
// The call was not executed.
type BusyError struct {
	// Open is how many calls were in the way.
	Open int
	// All is set where the limit is the one for all upstreams together.
	All bool
	// Refused says that too many calls waited already, or that the call waited for as
	// long as it may; else its context ended.
	Refused bool
}

func (e *BusyError) Error() string {
	text := fmt.Sprintf("busy: %d calls are under way, the most that are allowed at once", e.Open)
	if e.All {
		text += " on all servers together"
	}
	return text
}
