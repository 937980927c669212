// Package results turns the results of upstreams into answers. It formats, filters and searches them, cuts and keeps those that
// are too long, and reads further parts of them.
package results

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/state"
)

const (
	// keptBytes is how many bytes all results kept in memory may have together (see InMemory), and keptAge is how long they are
	// kept. A result that is longer than the store allows is not kept.
	keptBytes = 128 << 20
	keptAge   = 30 * time.Minute
	// pieceBytes bounds a unit of text (a line, or a part of it), in bytes; longer lines are split. A low limit of
	// tokens makes units even smaller.
	pieceBytes = 4 << 10
	// maxItems and maxLines are how many items or lines a result may be divided into, as each needs itemBytes or unitBytes of
	// memory. A list with more items is divided into lines, and a text with more lines into pieces of several lines.
	maxItems = 200_000
	maxLines = 1_000_000
)

// result is one complete long result.
type result struct {
	// principal owns the result; no other principal can read it.
	principal string
	origin    Origin
	// list has the items, if value has a list of at most maxItems items. If the list consists of the lines of a JSON string, it has
	// no items, and the lines are in units.
	list
	// units are the parts of the text if items is nil, and kind says what they are.
	units []string
	kind  unitKind
	// value is the JSON that select is applied to; nil if there is none.
	value json.RawMessage
	// verbatim means that parts of the result are not compressed when they are read. unasked means that the result was kept
	// because a grep or a filter left it out or failed, not because it was too long. file means that what a filter takes out of it is
	// not compressed either, because the tool hands out files.
	verbatim, unasked, file bool

	// itemHandles are the handles of those items that this process has also kept as separate results. mu guards itemHandles.
	mu          sync.Mutex
	itemHandles map[itemName]itemHandle
}

// Origin is the tool that a result comes from. If Tool is empty, the result is a resource or prompt of the server, or a list of
// them; a list may be from several servers; Server then has their names, separated by spaces. The zero Origin means that the result
// is from mcpx.
type Origin struct{ Server, Tool string }

// itemName identifies consecutive items of a result: the first, their number, and whether everything around the list is
// included.
type itemName struct {
	first, count int
	whole        bool
}

type itemHandle struct {
	handle string
	count  int // number of items or lines of the kept item
	since  time.Time
}

// Store keeps long results for read_result and running calls for wait_result; one limit applies to all of them together. It is
// safe for concurrent use.
type Store struct{ kept state.Results[Kept] }

// NewStore makes a store that keeps its results in the given storage. If storage is nil, the results are kept in memory, within
// keptBytes and keptAge.
func NewStore(storage state.Results[Kept]) Store {
	if storage == nil {
		storage = InMemory(0)
	}
	return Store{storage}
}

// InMemory keeps results in the memory of this process. The parameter memory is how much memory the process may use; 0 means
// no limit. The results take at most keptBytes, and at most a quarter of this limit.
func InMemory(memory int64) state.Results[Kept] {
	most := int64(keptBytes)
	if memory > 0 {
		most = min(most, memory/4)
	}
	return state.NewResults[Kept](int(most), keptAge)
}

const (
	// itemBytes and unitBytes are the memory that an item or unit needs in addition to its text.
	itemBytes = 24
	unitBytes = 16
	// handleBytes is the memory that every handle needs for the handle itself, its map entries and its structs.
	handleBytes = 1 << 10
	// The allocator rounds sizes of at most maxClass bytes up to a size class, which wastes at most an eighth. It rounds larger
	// sizes up to pages.
	maxClass  = 32 << 10
	pageBytes = 8 << 10
)

// allocated returns the memory that the allocator uses for n bytes.
func allocated(n int) int {
	if n <= maxClass {
		return n + n/8
	}
	return (n + pageBytes - 1) / pageBytes * pageBytes
}

// size returns how much memory a result uses. The result must not share its memory with anything else; see [result.own].
func (h *result) size() int {
	text := 0
	for _, unit := range h.units {
		text += len(unit)
	}
	return handleBytes + allocated(cap(h.value)) + allocated(cap(h.items)*itemBytes) + allocated(cap(h.units)*unitBytes) + allocated(text) +
		allocated(len(h.head)+len(h.tail)+len(h.before)+len(h.after))
}

// own copies the units of a result. They are slices of a text that may be part of a much longer message, which would otherwise
// stay in memory.
func (h *result) own() {
	if len(h.units) == 0 {
		return
	}
	text := strings.Clone(h.units[0])
	if len(h.units) > 1 {
		text = strings.Join(h.units, "")
	}
	units := make([]string, len(h.units))
	for i, unit := range h.units {
		units[i], text = text[:len(unit)], text[len(unit):]
	}
	h.units = units
}

// add keeps h and returns an unguessable handle, which is empty if h is larger than the store allows. Other results may be
// dropped to make room.
func (s *Store) add(h *result) string {
	h.own()
	return s.kept.Keep(h.principal, &Kept{result: h}, h.size())
}

// addItem keeps item, which is the part of h that some selects, as a separate result, and returns its handle. If this part was kept
// less than keptAge/2 ago and is still there, addItem returns the handle that it has. So a reader who reads an item again and again
// does not displace the results of others.
func (s *Store) addItem(h *result, some span, item *result) string {
	name := itemName{some.at(0), some.len(), some.whole}
	h.mu.Lock()
	defer h.mu.Unlock()
	// The limit determines into how many parts an item is divided. If a request has another limit, that number may differ, and the
	// item must be kept again.
	if kept := h.itemHandles[name]; kept.count == item.count() && time.Since(kept.since) < keptAge/2 {
		if _, err := s.kept.Get(context.Background(), kept.handle, item.principal); err == nil { // still kept
			return kept.handle
		}
	}
	if h.itemHandles == nil {
		h.itemHandles = make(map[itemName]itemHandle)
	}
	item.unasked = h.unasked
	kept := itemHandle{s.add(item), item.count(), time.Now()}
	h.itemHandles[name] = kept
	return kept.handle
}

// Len returns the number of results and running calls that this process keeps.
func (s *Store) Len() int { return s.kept.Len() }

// errRunning is the error for the handle of a call. read_result cannot read such a handle: only wait_result returns the result of
// the call.
var errRunning = errors.New("is the handle of a call that was still running; wait_result has its result")

// get finds a result that the principal may read. The error is errRunning, state.ErrUnknown or state.ErrAway.
func (p Pages) get(ctx context.Context, handle string) (*result, error) {
	kept, err := p.Store.kept.Get(ctx, handle, p.Principal)
	switch {
	case errors.Is(err, state.ErrElsewhere):
		return nil, errRunning
	case err != nil:
		return nil, err
	case kept.result != nil && p.MayRead(ctx, kept.result.origin):
		return kept.result, nil
	case kept.held != nil && p.MayRead(ctx, kept.origin):
		return nil, errRunning
	}
	return nil, state.ErrUnknown
}
