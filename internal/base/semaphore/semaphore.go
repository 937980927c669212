// Package semaphore bounds how many calls are open at once, with a bounded queue for those that wait.
package semaphore

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Semaphore bounds how many calls are open at once. Further calls wait, first come first served. The zero value has no
// limit. Safe for concurrent use.
type Semaphore struct {
	mu    sync.Mutex
	limit int       // 0 = none
	most  Queue     // bounds queue
	open  int       // how many calls are open
	queue list.List // of chan struct{}, closed when its call is let in
}

// Queue bounds the calls that wait for a semaphore. The zero value has no bounds.
type Queue struct {
	// Calls is how many may wait; 0 = any number, less than 0 = none.
	Calls int
	// Wait is how long each may wait; 0 = as long as its context lasts.
	Wait time.Duration
}

// New returns a semaphore for this many open calls, 0 = no limit, and a queue.
func New(limit int, queue Queue) *Semaphore { return &Semaphore{limit: limit, most: queue} }

// Set changes the limit, 0 = none, and the bounds of the queue. Open calls stay open, and those that wait keep their bounds.
func (s *Semaphore) Set(limit int, queue Queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.most = limit, queue
	s.admit()
}

// admit lets in the first calls of the queue while there is room. The caller holds the lock.
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

// Use returns how many calls are open, and how many wait.
func (s *Semaphore) Use() (open, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, s.queue.Len()
}

// Enter waits for room, at most until ctx ends and within the bounds of the queue. Leave gives the room back. The error
// is a *BusyError.
func (s *Semaphore) Enter(ctx context.Context) error {
	s.mu.Lock()
	most := s.most
	if !s.free() && most.Calls != 0 && s.queue.Len() >= most.Calls {
		defer s.mu.Unlock()
		return &BusyError{Open: s.open, Refused: true}
	}
	place := s.join()
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

// Join adds a call to the queue, however long that is, and returns its place, with which the caller must call Await. If
// there is room, the place is nil and the call is in.
func (s *Semaphore) Join() *list.Element {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.join()
}

// free reports whether a call is let in at once. The caller holds the lock.
func (s *Semaphore) free() bool { return s.queue.Len() == 0 && (s.limit <= 0 || s.open < s.limit) }

// join is Join for a caller that holds the lock.
func (s *Semaphore) join() *list.Element {
	if s.free() {
		s.open++
		return nil
	}
	return s.queue.PushBack(make(chan struct{}))
}

// Await waits until the call at this place is let in, at most until ctx ends. A signal on hurry, which may be nil, moves
// the place to the front.
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

// Exceed lets a call in at once, even over the limit.
func (s *Semaphore) Exceed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
}

// Leave gives back the room of one call.
func (s *Semaphore) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.admit()
}

// BusyError means that a call was not let in. It was not executed.
type BusyError struct {
	// Open is how many other calls were open.
	Open int
	// All means that the limit is the one for all upstreams together.
	All bool
	// Refused means that the queue was full, or that the call has waited as long as the queue allows; otherwise its
	// context ended.
	Refused bool
}

func (e *BusyError) Error() string {
	text := fmt.Sprintf("busy: %d calls are under way, the most that are allowed at once", e.Open)
	if e.All {
		text += " on all servers together"
	}
	return text
}
