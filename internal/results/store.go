// Package results turns upstreams' results into answers: it formats, filters and searches them, cuts what is too long, keeps it, and
// reads further parts.
package results

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/state"
)

const (
	// keptBytes and keptAge bound the kept results together; keptBytes may be lower. A result over the bound is not kept.
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
	origin    Origin
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

// Origin is the tool that a result comes from. Without a tool it is a resource or prompt of the server, or a list of them, which
// may have several servers, each after a space; the zero Origin is mcpx itself.
type Origin struct{ Server, Tool string }

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
		kept = InMemory(0)
	}
	return Store{kept}
}

// InMemory keeps results in the memory of this process: within keptBytes, and a quarter of the memory that the process may use;
// 0 = any amount.
func InMemory(memory int64) state.Results[Kept] {
	most := int64(keptBytes)
	if memory > 0 {
		most = min(most, memory/4)
	}
	return state.NewResults[Kept](int(most), keptAge)
}

const (
	// itemBytes and unitBytes are the memory for an item or line in addition to its text.
	itemBytes = 24
	unitBytes = 16
	// handleBytes is the memory for what every handle needs: the handle, its places in the maps, the structs.
	handleBytes = 1 << 10
	// mostClass is the size up to which the allocator rounds to a class, which wastes at most an eighth; from there on it rounds to pages.
	mostClass = 32 << 10
	pageBytes = 8 << 10
)

// allocated returns the memory that the allocator uses for n bytes.
func allocated(n int) int {
	if n <= mostClass {
		return n + n/8
	}
	return (n + pageBytes - 1) / pageBytes * pageBytes
}

// size returns the memory of a result that is not shared with anything else ([result.own]).
func (h *result) size() int {
	text := 0
	for _, unit := range h.units {
		text += len(unit)
	}
	return handleBytes + allocated(cap(h.value)) + allocated(cap(h.items)*itemBytes) + allocated(cap(h.units)*unitBytes) + allocated(text) +
		allocated(len(h.head)+len(h.tail))
}

// own copies the units of a result to memory of its own: they are slices of a text, which may be part of a much longer message.
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

// add keeps h and returns an unguessable handle; empty if h is over keptBytes. Other results may be dropped to make room.
func (s *Store) add(h *result) string {
	h.own()
	return s.kept.Keep(h.principal, &Kept{result: h}, h.size())
}

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
