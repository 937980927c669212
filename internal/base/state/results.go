package state

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"time"
)

// results implement [Results] in memory.
type results[R any] struct {
	limit int           // maximum of all sizes together, in bytes
	age   time.Duration // maximum age of a result

	mu       sync.Mutex
	byHandle map[string]*kept[R]
	order    []string // handles, the oldest result first
	bytes    int
	byOwner  map[string]int // bytes per owner
	timer    *time.Timer    // fires when the oldest result expires; nil if there are no results
}

type kept[R any] struct {
	owner  string
	result *R
	size   int
	since  time.Time
}

// NewResults returns Results in memory. limit bounds all results together, in bytes; results older than age are removed.
func NewResults[R any](limit int, age time.Duration) Results[R] {
	return &results[R]{limit: limit, age: age, byHandle: make(map[string]*kept[R]), byOwner: make(map[string]int)}
}

// Keep keeps a result under a random handle. If all results together are then too large, it removes some.
func (s *results[R]) Keep(owner string, r *R, size int) (handle string) {
	if size > s.limit {
		return ""
	}
	handle = "r" + strings.ToLower(rand.Text()[:20])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byHandle[handle] = &kept[R]{owner, r, size, time.Now()}
	s.order = append(s.order, handle)
	s.grow(owner, size)
	s.makeRoom()
	if s.timer == nil {
		s.timer = time.AfterFunc(s.age, s.expire)
	}
	return handle
}

// Get returns a result. The error is ErrUnknown if the result is too old or belongs to another owner.
func (s *results[R]) Get(_ context.Context, handle, owner string) (*R, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.byHandle[handle]
	if !ok || one.owner != owner || time.Since(one.since) >= s.age {
		return nil, ErrUnknown
	}
	return one.result, nil
}

// Grow adds size, in bytes, to the size of a result. If all results together are then too large, it removes some.
func (s *results[R]) Grow(handle string, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, ok := s.byHandle[handle]; ok {
		one.size += size
		s.grow(one.owner, size)
		s.makeRoom()
	}
}

// Len returns the number of results.
func (s *results[R]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byHandle)
}

// grow adds size, in bytes, to what an owner uses. The caller holds the lock.
func (s *results[R]) grow(owner string, size int) {
	s.bytes += size
	if s.byOwner[owner] += size; s.byOwner[owner] == 0 {
		delete(s.byOwner, owner)
	}
}

// makeRoom removes results until they fit the bound: each time the oldest result of the owner that uses the most
// bytes. The caller holds the lock.
func (s *results[R]) makeRoom() {
	for s.bytes > s.limit {
		most := ""
		for owner, size := range s.byOwner {
			if size > s.byOwner[most] {
				most = owner
			}
		}
		s.drop(slices.IndexFunc(s.order, func(handle string) bool { return s.byHandle[handle].owner == most }))
	}
}

// drop removes the result whose handle is at index i of order. The caller holds the lock.
func (s *results[R]) drop(i int) {
	handle := s.order[i]
	s.order = slices.Delete(s.order, i, i+1)
	s.grow(s.byHandle[handle].owner, -s.byHandle[handle].size)
	delete(s.byHandle, handle)
}

// expire removes expired results, and sets the timer for the result that expires next.
func (s *results[R]) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.order) > 0 {
		if left := s.age - time.Since(s.byHandle[s.order[0]].since); left > 0 {
			s.timer.Reset(left)
			return
		}
		s.drop(0)
	}
	s.timer = nil
}
