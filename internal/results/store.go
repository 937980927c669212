// Package results handles results that are too long: it keeps them, cuts them, searches
// them, and reads further parts.
package results

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// keptBytes and keptAge bound the kept results together. A result over keptBytes
	// is not kept.
	keptBytes = 128 << 20
	keptAge   = 30 * time.Minute
	// pieceBytes bounds a unit of text; a low limit of tokens lowers it. A longer line
	// is split between two rows or two words.
	pieceBytes = 4 << 10
	// maxItems and maxLines bound the parts of a result, as each costs sliceBytes. A
	// result with more is kept in pieces of its text.
	maxItems = 200_000
	maxLines = 1_000_000
)

// result is one whole result that is too long.
type result struct {
	// principal owns the result; no other can read it.
	principal string
	// list has the items, if value has a list of at most maxItems.
	list
	// units are the parts of the text, of some kind, if items is nil.
	units []string
	kind  unitKind
	// value is the JSON for select; nil if there is none.
	value json.RawMessage
	// verbatim means that parts are not compressed.
	verbatim bool
	// held is a value that is no result; then there is no text.
	held any

	size  int
	since time.Time
	// itemHandles are the handles of items that are kept as results of their own.
	// The lock of the store guards them.
	itemHandles map[itemName]string
}

// itemName names items of a result: the first, their number, and whether what is around the
// list stands with them.
type itemName struct {
	first, count int
	whole        bool
}

// Store keeps long results for read_result, within keptBytes and keptAge. The zero
// value is ready for use. Safe for concurrent use.
type Store struct {
	mu    sync.Mutex
	byID  map[string]*result
	order []string // oldest first
	bytes int
	of    map[string]int // the bytes of each principal
	timer *time.Timer    // of expire; nil if nothing is kept
}

// sliceBytes is the memory of an item or line beside its text.
const sliceBytes = 24

// add keeps h and returns its handle, which nobody can guess; empty if h is over
// keptBytes. It drops old results to make room (makeRoom).
func (s *Store) add(h *result) string {
	h.size = len(h.value) + (len(h.items)+len(h.units))*sliceBytes
	for _, unit := range h.units {
		h.size += len(unit)
	}
	if h.size > keptBytes {
		return ""
	}
	handle := "r" + strings.ToLower(rand.Text()[:20])
	h.since = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = make(map[string]*result)
	}
	s.byID[handle] = h
	s.order = append(s.order, handle)
	s.grow(h.principal, h.size)
	s.makeRoom()
	if s.timer == nil {
		s.timer = time.AfterFunc(keptAge, s.expire)
	}
	return handle
}

// addItem keeps an item of h as a result of its own, once, however often it is read:
// one reader must not push out the results of others.
func (s *Store) addItem(h *result, some span, item *result) string {
	name := itemName{some.at(0), some.len(), some.whole}
	s.mu.Lock()
	handle := h.itemHandles[name]
	kept, ok := s.byID[handle]
	// After a change of the limit the item has other lines.
	again := ok && kept.count() == item.count() && time.Since(kept.since) < keptAge/2
	s.mu.Unlock()
	if again {
		return handle
	}
	handle = s.add(item)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.itemHandles == nil {
		h.itemHandles = make(map[itemName]string)
	}
	h.itemHandles[name] = handle
	return handle
}

// Len is the number of kept results.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// grow counts bytes of a principal. The caller holds the lock.
func (s *Store) grow(principal string, size int) {
	if s.of == nil {
		s.of = make(map[string]int)
	}
	s.bytes += size
	if s.of[principal] += size; s.of[principal] == 0 {
		delete(s.of, principal)
	}
}

// makeRoom drops the oldest results of the principal that has most: nobody pushes out those
// of others who have less. The caller holds the lock.
func (s *Store) makeRoom() {
	for s.bytes > keptBytes {
		most := ""
		for principal, size := range s.of {
			if size > s.of[most] {
				most = principal
			}
		}
		s.drop(slices.IndexFunc(s.order, func(handle string) bool { return s.byID[handle].principal == most }))
	}
}

// drop drops one result, by its place in order. The caller holds the lock.
func (s *Store) drop(i int) {
	handle := s.order[i]
	s.order = slices.Delete(s.order, i, i+1)
	s.grow(s.byID[handle].principal, -s.byID[handle].size)
	delete(s.byID, handle)
}

// expire drops the results that are too old, and sets the timer for the oldest of
// the others.
func (s *Store) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.order) > 0 {
		if left := keptAge - time.Since(s.byID[s.order[0]].since); left > 0 {
			s.timer.Reset(left)
			return
		}
		s.drop(0)
	}
	s.timer = nil
}

// get finds a result of a principal by its handle.
func (s *Store) get(handle, principal string) (*result, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.byID[handle]
	if !ok || h.principal != principal || time.Since(h.since) >= keptAge {
		return nil, false
	}
	return h, true
}
