// Package pages is about results that are too long: they are kept, cut, searched
// and read on.
package pages

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"sync"
	"time"
)

const (
	// keptBytes and keptAge bound what is kept of long results. One that is longer
	// alone is not kept.
	keptBytes = 128 << 20
	keptAge   = 30 * time.Minute
	// pieceBytes is the longest line that is one unit, with a low limit less; a
	// longer one is several, parted between two rows or two words.
	pieceBytes = 4 << 10
	// maxItems and maxLines bound what is kept apart, as each costs sliceBytes.
	// A result of more parts is kept in pieces of its text.
	maxItems = 200_000
	maxLines = 1_000_000
)

// result is one result that did not fit, whole.
type result struct {
	// principal is whose it is; nobody else can read it.
	principal string
	// items are the elements of the array that value is, and lie in it; nil where
	// the text is no array, or one of more than maxItems.
	items []json.RawMessage
	// units are the parts of a text, where items is nil: kind says of what kind.
	units []string
	kind  unitKind
	// value is the JSON that select works on; nil where there is none.
	value json.RawMessage
	// verbatim texts stay as they are also in parts.
	verbatim bool

	size  int
	since time.Time
	// opened are the handles of items that are kept by themselves. It is guarded by
	// the store's lock.
	opened map[int]string
}

// Store keeps long results for read_result: so many bytes in all, so long each.
// The zero value is ready for use. Safe for concurrent use.
type Store struct {
	mu    sync.Mutex
	byID  map[string]*result
	order []string // oldest first
	bytes int
	timer *time.Timer // to drop what is too old; nil before the first
}

// sliceBytes is what an item or a line costs beside its text.
const sliceBytes = 24

// put keeps h and returns its handle, which cannot be guessed; empty where h is
// over keptBytes alone. The oldest results make room.
func (s *Store) put(h *result) string {
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
	s.bytes += h.size
	for s.bytes > keptBytes {
		s.dropOldest()
	}
	if s.timer == nil {
		s.timer = time.AfterFunc(keptAge, s.expire)
	}
	return handle
}

// putItem is put for an item of h. An item is kept once, however often it is read:
// one reader must not push out the results of others.
func (s *Store) putItem(h *result, i int, item *result) string {
	s.mu.Lock()
	handle := h.opened[i]
	kept, ok := s.byID[handle]
	// After a change of the limit its lines would be others.
	again := ok && kept.count() == item.count() && time.Since(kept.since) < keptAge/2
	s.mu.Unlock()
	if again {
		return handle
	}
	handle = s.put(item)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.opened == nil {
		h.opened = make(map[int]string)
	}
	h.opened[i] = handle
	return handle
}

// Len is how many results are kept.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// dropOldest forgets one result. The caller holds the lock.
func (s *Store) dropOldest() {
	oldest := s.order[0]
	s.order = s.order[1:]
	s.bytes -= s.byID[oldest].size
	delete(s.byID, oldest)
}

// expire forgets the results that are too old; the next is when the oldest of
// the others is.
func (s *Store) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.order) > 0 {
		if left := keptAge - time.Since(s.byID[s.order[0]].since); left > 0 {
			s.timer.Reset(left)
			return
		}
		s.dropOldest()
	}
	s.timer = nil
}

// get finds a result of principal's by its handle.
func (s *Store) get(handle, principal string) (*result, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.byID[handle]
	if !ok || h.principal != principal || time.Since(h.since) >= keptAge {
		return nil, false
	}
	return h, true
}
