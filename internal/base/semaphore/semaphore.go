// Package semaphore bounds how many calls are open at the same time. Calls over the limit wait in a queue, which is
// bounded too and fair to the owners of the calls.
package semaphore

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Semaphore bounds how many calls are open at the same time. Further calls wait. When a call ends, the semaphore lets in the next
// call of the owner with the fewest open calls. If several owners have equally few, it takes the owner whose last call was let in
// the longest time ago. It lets in the calls of one owner in the order of their arrival, unless [Semaphore.Await] moves a call to
// the front. So an owner with many calls does not delay the others. An owner is the ID of a principal; all calls without a
// principal have the empty owner. The zero value has no limit. Safe for concurrent use.
type Semaphore struct {
	mu       sync.Mutex
	limit    int              // maximum of open; 0 means no limit
	share    int              // maximum of open calls of one owner; 0 means no limit
	bounds   Queue            // bounds of the queue
	open     int              // how many calls are open
	waiting  int              // how many calls wait
	arrived  uint64           // counts the calls that had to wait
	admitted uint64           // counts the calls that were let in
	owners   map[string]*line // owners with open or waiting calls; nil before the first call
	spare    *line            // the last line removed from owners, reused for the next owner; may be nil
}

// line is the open and waiting calls of one owner.
type line struct {
	owner string
	open  int
	last  uint64    // value of Semaphore.admitted when a call of this owner was last let in
	queue list.List // elements are *Place
}

// Place is one waiting call in the queue.
type Place struct {
	line    *line
	at      *list.Element
	arrival uint64
	decided chan struct{} // closed when the call is let in, or refused
	refused bool          // set before decided is closed
}

// Queue bounds the calls that wait for a semaphore. The zero value means no bounds.
type Queue struct {
	// Calls is how many calls may wait. 0 means any number, a negative number none. If this many calls wait and another one
	// arrives, the newest call of the owner with the most waiting calls is refused; this may be the call that arrives.
	Calls int
	// Wait is how long a call may wait. 0 means until its context ends.
	Wait time.Duration
}

// New returns a semaphore that lets this many calls be open (0 means no limit), with a queue.
func New(limit int, queue Queue) *Semaphore { return &Semaphore{limit: limit, bounds: queue} }

// Shared is like New, but calls of one principal may use only half of the limit, so that other principals need not wait for these
// calls to end. Calls without a principal may use the whole limit: where such calls occur, no call has a principal.
func Shared(limit int, queue Queue) *Semaphore {
	return &Semaphore{limit: limit, share: max(1, limit/2), bounds: queue}
}

// Set changes the limit (0 means no limit) and the bounds of the queue. Open calls stay open, and calls that wait
// already keep their old bounds.
func (s *Semaphore) Set(limit int, queue Queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.bounds = limit, queue
	s.admit()
}

// admit lets in waiting calls while the limit allows it. The caller holds the lock.
func (s *Semaphore) admit() {
	for s.waiting > 0 && (s.limit <= 0 || s.open < s.limit) {
		var next *Place
		for _, l := range s.owners {
			if first := l.first(); first != nil && s.mayOpen(l) && (next == nil || first.before(next)) {
				next = first
			}
		}
		if next == nil {
			return
		}
		s.leaveQueue(next)
		s.letIn(next.line)
		close(next.decided)
	}
}

// first returns the owner's first waiting call, or nil if none waits.
func (l *line) first() *Place {
	if front := l.queue.Front(); front != nil {
		return front.Value.(*Place)
	}
	return nil
}

// before reports whether p is let in before other. Both are the first waiting calls of their owners.
func (p *Place) before(other *Place) bool {
	a, b := p.line, other.line
	return cmp.Or(cmp.Compare(a.open, b.open), cmp.Compare(a.last, b.last), cmp.Compare(p.arrival, other.arrival)) < 0
}

// mayOpen reports whether the owner has fewer open calls than its share.
func (s *Semaphore) mayOpen(l *line) bool { return s.share <= 0 || l.owner == "" || l.open < s.share }

// letIn counts one more open call of the owner. The caller holds the lock.
func (s *Semaphore) letIn(l *line) {
	s.open++
	s.admitted++
	l.open++
	l.last = s.admitted
}

// leaveQueue removes a call from the queue of its owner. The caller holds the lock.
func (s *Semaphore) leaveQueue(p *Place) {
	p.line.queue.Remove(p.at)
	s.waiting--
}

// lineOf returns the line of an owner; it creates the line if needed. The caller holds the lock.
func (s *Semaphore) lineOf(owner string) *line {
	l := s.owners[owner]
	if l == nil {
		if s.owners == nil {
			s.owners = make(map[string]*line)
		}
		if l, s.spare = s.spare, nil; l == nil {
			l = &line{}
		}
		l.owner, l.last = owner, 0
		s.owners[owner] = l
	}
	return l
}

// forget removes the line of an owner that has no open and no waiting calls. The caller holds the lock.
func (s *Semaphore) forget(l *line) {
	if l.open == 0 && l.queue.Len() == 0 {
		delete(s.owners, l.owner)
		s.spare = l
	}
}

// Use returns how many calls are open and how many wait.
func (s *Semaphore) Use() (open, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, s.waiting
}

// Enter waits until a call of this owner is let in, at most until ctx ends and within the bounds of the queue. If the error is nil,
// the caller must call Leave when the call ends. Otherwise the error is a *BusyError.
func (s *Semaphore) Enter(ctx context.Context, owner string) error {
	s.mu.Lock()
	bounds := s.bounds
	l := s.lineOf(owner)
	if !s.free(l) && bounds.Calls != 0 && s.waiting >= bounds.Calls && !s.displace(l) {
		defer s.mu.Unlock()
		s.forget(l)
		return &BusyError{Open: s.open, Refused: true}
	}
	place := s.join(l)
	s.mu.Unlock()
	if place == nil {
		return nil
	}
	bounded := ctx
	if bounds.Wait > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, bounds.Wait)
		defer cancel()
	}
	err := s.Await(bounded, place, nil)
	if busy, ok := errors.AsType[*BusyError](err); ok {
		busy.Refused = busy.Refused || ctx.Err() == nil
	}
	return err
}

// displace makes room in a full queue for a call of the owner of l: it refuses the newest call of the owner with the
// most waiting calls. It returns false and does nothing if that owner would then have fewer waiting calls than the
// owner of l. The caller holds the lock.
func (s *Semaphore) displace(l *line) bool {
	longest := l
	for _, other := range s.owners {
		if other.queue.Len() > longest.queue.Len() {
			longest = other
		}
	}
	if longest.queue.Len() <= l.queue.Len()+1 {
		return false
	}
	last := longest.queue.Back().Value.(*Place)
	s.leaveQueue(last)
	last.refused = true
	close(last.decided)
	return true
}

// Join lets in a call and returns nil, or adds the call to the queue, even if the queue is full, and returns its place. If there is
// a place, the caller must call Await with it.
func (s *Semaphore) Join(owner string) *Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.join(s.lineOf(owner))
}

// free reports whether a call of the owner can be let in at once. Calls of other owners may wait even though the limit is not
// reached: their owners have used up their shares, so this call need not wait for them. The caller holds the lock.
func (s *Semaphore) free(l *line) bool {
	return l.queue.Len() == 0 && (s.limit <= 0 || s.open < s.limit) && s.mayOpen(l)
}

// join lets in a call of the owner of l and returns nil, or adds the call to the queue and returns its place. The caller holds the lock.
func (s *Semaphore) join(l *line) *Place {
	if s.free(l) {
		s.letIn(l)
		return nil
	}
	s.arrived++
	s.waiting++
	p := &Place{line: l, arrival: s.arrived, decided: make(chan struct{})}
	p.at = l.queue.PushBack(p)
	return p
}

// Await waits until the call at this place is let in, at most until ctx ends. A signal on hurry, which may be nil, moves the call
// to the front of its owner's calls. Any error is a *BusyError.
func (s *Semaphore) Await(ctx context.Context, place *Place, hurry <-chan struct{}) error {
	for {
		select {
		case <-place.decided:
			return s.outcome(place)
		case <-hurry:
			s.mu.Lock()
			place.line.queue.MoveToFront(place.at)
			s.mu.Unlock()
			continue
		case <-ctx.Done():
		}
		break
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-place.decided: // decided at the same moment as ctx ended
		if !place.refused {
			s.end(place.line)
		}
	default: // not decided, so place.line is still in owners
		s.leaveQueue(place)
		s.forget(place.line)
	}
	return &BusyError{Open: s.open}
}

// outcome returns nil if the call was let in, or the error if it was refused.
func (s *Semaphore) outcome(p *Place) error {
	if !p.refused {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &BusyError{Open: s.open, Refused: true}
}

// Exceed lets a call of this owner in at once, even over the limit.
func (s *Semaphore) Exceed(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letIn(s.lineOf(owner))
}

// Leave ends one open call of this owner, so that another call can be let in.
func (s *Semaphore) Leave(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(s.lineOf(owner))
}

// Yield lets a waiting call of another owner go first. One open call of this owner then waits at the front of the owner's queue
// until it is let in again, at most until ctx ends. If the turn falls to this owner all the same, the call is let in again at once.
// If no call of another owner waits, or if the limit is not reached, Yield does nothing. After an error the owner's call is no
// longer open. waited is how long Yield has waited.
func (s *Semaphore) Yield(ctx context.Context, owner string) (waited time.Duration, err error) {
	s.mu.Lock()
	l := s.lineOf(owner)
	if s.waiting == l.queue.Len() || s.limit <= 0 || s.open < s.limit {
		s.mu.Unlock()
		return 0, nil
	}
	began := time.Now()
	s.arrived++
	s.waiting++
	place := &Place{line: l, arrival: s.arrived, decided: make(chan struct{})}
	place.at = l.queue.PushFront(place)
	s.end(l)
	s.mu.Unlock()
	err = s.Await(ctx, place, nil)
	return time.Since(began), err
}

// end ends an open call of an owner. The caller holds the lock.
func (s *Semaphore) end(l *line) {
	s.open--
	l.open--
	s.admit()
	s.forget(l)
}

// BusyError means that a call was not let in, and so was not executed.
type BusyError struct {
	// Open is how many other calls were open.
	Open int
	// All means that the limit for all servers together was reached, not the limit of one server.
	All bool
	// Refused means that the queue was full, or that the call had waited as long as the queue allows. If Refused is
	// false, the context of the call ended.
	Refused bool
}

func (e *BusyError) Error() string {
	text := fmt.Sprintf("busy: %d calls are under way, the most that are allowed at once", e.Open)
	if e.All {
		text += " on all servers together"
	}
	return text
}
