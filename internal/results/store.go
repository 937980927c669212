// Package results turns upstreams' results into answers: it formats, filters and searches them, cuts what is too long, keeps it, and
// reads further parts.
package results

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"mcpx/internal/base/state"
)

const (
	// keptBytes and keptAge bound the kept results together. A result over keptBytes is not kept.
	keptBytes = 128 << 20
	keptAge   = 30 * time.Minute
	// pieceBytes bounds a unit of text; a low limit of tokens lowers it. Longer lines are split.
	pieceBytes = 4 << 10
	// maxItems and maxLines bound the parts of a result, as each costs sliceBytes. A longer result is divided into pieces of text.
	maxItems = 200_000
	maxLines = 1_000_000
)

// result is one long result, whole.
type result struct {
	// principal owns the result; only it can read it.
	principal string
	// list has the items if value has a list of at most maxItems.
	list
	// units are the parts of the text if items is nil; kind is their kind.
	units []string
	kind  unitKind
	// value is the JSON for select; nil if there is none.
	value json.RawMessage
	// verbatim means that parts are not compressed.
	verbatim bool

	// itemHandles are the handles of items that this process keeps as results of their own. mu guards them.
	mu          sync.Mutex
	itemHandles map[itemName]itemHandle
}

// itemName identifies consecutive items of a result: the first, their number, and whether everything around the list is included.
type itemName struct {
	first, count int
	whole        bool
}

type itemHandle struct {
	handle string
	count  int // of the item's own items or lines
	since  time.Time
}

// Store keeps long results for read_result and calls for wait_result, within one bound. Safe for concurrent use.
type Store struct{ kept state.Results[Kept] }

// NewStore makes a store on top of kept; nil = in memory, within keptBytes and keptAge.
func NewStore(kept state.Results[Kept]) Store {
	if kept == nil {
		kept = InMemory()
	}
	return Store{kept}
}

// InMemory keeps results in the memory of this process.
func InMemory() state.Results[Kept] { return state.NewResults[Kept](keptBytes, keptAge) }

// sliceBytes is the memory for an item or line in addition to its text.
const sliceBytes = 24

// size estimates the memory of a result.
func (h *result) size() int {
	size := len(h.value) + (len(h.items)+len(h.units))*sliceBytes
	for _, unit := range h.units {
		size += len(unit)
	}
	return size
}

// add keeps h and returns an unguessable handle; empty if h is over keptBytes. Other results may be dropped to make room.
func (s *Store) add(h *result) string { return s.kept.Keep(h.principal, &Kept{result: h}, h.size()) }

// addItem keeps an item of h as a result of its own, once, however often it is read: one reader must not displace the results of others.
func (s *Store) addItem(h *result, some span, item *result) string {
	name := itemName{some.at(0), some.len(), some.whole}
	h.mu.Lock()
	defer h.mu.Unlock()
	// If the limit was changed, the item is divided differently.
	if kept := h.itemHandles[name]; kept.count == item.count() && time.Since(kept.since) < keptAge/2 {
		if _, err := s.kept.Get(context.Background(), kept.handle, item.principal); err == nil { // still kept
			return kept.handle
		}
	}
	if h.itemHandles == nil {
		h.itemHandles = make(map[itemName]itemHandle)
	}
	kept := itemHandle{s.add(item), item.count(), time.Now()}
	h.itemHandles[name] = kept
	return kept.handle
}

// Len returns the number of kept results.
func (s *Store) Len() int { return s.kept.Len() }

// get finds a principal's result by its handle. The error is state.ErrUnknown or state.ErrAway.
func (s *Store) get(ctx context.Context, handle, principal string) (*result, error) {
	kept, err := s.kept.Get(ctx, handle, principal)
	if err == nil && kept.result == nil {
		err = state.ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	return kept.result, nil
}
