package executor

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"sync"
	"time"
)

const (
	// heldBytes and heldAge bound what is kept of long results. One that is longer
	// alone is not kept.
	heldBytes = 128 << 20
	heldAge   = 30 * time.Minute
	// pieceBytes is the longest line that is one unit, with a low limit less; a
	// longer one is several, parted between two words.
	pieceBytes = 4 << 10
	// maxItems and maxLines bound what is held apart, as each costs sliceBytes.
	// What has more is held in pieces of its text.
	maxItems = 200_000
	maxLines = 1_000_000
)

// held is one result that did not fit, whole.
type held struct {
	// principal is whose it is; nobody else can read it.
	principal string
	// items are the elements of the array that value is, and lie in it; nil where
	// the text is no array, or one of more than maxItems.
	items []json.RawMessage
	// units are the lines of a text, with their ends, where items is nil. A line
	// over pieceBytes is several.
	units []string
	// merged says that units are several lines each: there are over maxLines.
	merged bool
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

// store keeps long results for read_result: so many bytes in all, so long each.
// Safe for concurrent use.
type store struct {
	mu    sync.Mutex
	byID  map[string]*held
	order []string // oldest first
	bytes int
	timer *time.Timer // to drop what is too old; nil before the first
}

// sliceBytes is what an item or a line costs beside its text.
const sliceBytes = 24

// put keeps h and returns its handle, which cannot be guessed; empty where h is
// over heldBytes alone. The oldest results make room.
func (s *store) put(h *held) string {
	h.size = len(h.value) + (len(h.items)+len(h.units))*sliceBytes
	for _, unit := range h.units {
		h.size += len(unit)
	}
	if h.size > heldBytes {
		return ""
	}
	handle := "r" + strings.ToLower(rand.Text()[:20])
	h.since = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = make(map[string]*held)
	}
	s.byID[handle] = h
	s.order = append(s.order, handle)
	s.bytes += h.size
	for s.bytes > heldBytes {
		s.dropOldest()
	}
	if s.timer == nil {
		s.timer = time.AfterFunc(heldAge, s.expire)
	}
	return handle
}

// putItem is put for an item of h, which is kept once: who reads an item again and
// again must not push out what others keep.
func (s *store) putItem(h *held, i int, item *held) string {
	s.mu.Lock()
	handle := h.opened[i]
	kept, ok := s.byID[handle]
	// After a change of the limit its lines would be others.
	again := ok && kept.count() == item.count() && time.Since(kept.since) < heldAge/2
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

// dropOldest forgets one result. The caller holds the lock.
func (s *store) dropOldest() {
	oldest := s.order[0]
	s.order = s.order[1:]
	s.bytes -= s.byID[oldest].size
	delete(s.byID, oldest)
}

// expire forgets the results that are too old; the next is when the oldest of
// the others is.
func (s *store) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.order) > 0 {
		if left := heldAge - time.Since(s.byID[s.order[0]].since); left > 0 {
			s.timer.Reset(left)
			return
		}
		s.dropOldest()
	}
	s.timer = nil
}

// get finds a result of principal's by its handle.
func (s *store) get(handle, principal string) (*held, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.byID[handle]
	if !ok || h.principal != principal || time.Since(h.since) >= heldAge {
		return nil, false
	}
	return h, true
}

// hold makes what is kept of a text: of an array its items, of anything else, and
// of an array of very many, the lines of the text as the model gets it, which for
// a table in an object are its rows.
func (e run) hold(text, shaped string, verbatim bool, principal string) *held {
	h := &held{principal: principal, verbatim: verbatim}
	trimmed := strings.TrimSpace(text)
	if len(trimmed) > 0 && (trimmed[0] == '[' || trimmed[0] == '{') {
		if value := json.RawMessage(trimmed); json.Valid(value) {
			h.value = value
		}
	}
	if h.value != nil && trimmed[0] == '[' && !verbatim {
		if items, ok := arrayItems(h.value, maxItems); ok && len(items) > 1 {
			h.items = items
			return h
		}
	}
	// No text has more tokens than bytes: a piece of a line always fits.
	h.units, h.merged = unitsOf(shaped, min(max(e.limit()-minRoom, 64), pieceBytes), maxLines)
	return h
}

// unitsOf parts a text into lines, and lines over longest bytes between two
// words. Over most lines they are merged, as many as have longest bytes. Together
// the parts are the text.
func unitsOf(text string, longest, most int) (units []string, merged bool) {
	lines := strings.Count(text, "\n") + 1
	if merged = lines > most; merged {
		lines = 0
	}
	units = make([]string, 0, lines+len(text)/longest)
	for text != "" {
		part := text[:min(len(text), longest)]
		end := strings.IndexByte(part, '\n') + 1
		if merged && len(part) < len(text) {
			end = strings.LastIndexByte(part, '\n') + 1
		} else if merged {
			end = len(part)
		}
		switch {
		case end > 0:
		case len(part) < len(text):
			end = wordEnd(text, longest)
		default:
			end = len(part)
		}
		units = append(units, text[:end])
		text = text[end:]
	}
	return units, merged
}

// wordEnd finds the last place at or before limit where a word ends; without
// one, the last where a character does.
func wordEnd(line string, limit int) int {
	if at := strings.LastIndexAny(line[limit/2:limit], " \t"); at >= 0 {
		return limit/2 + at + 1
	}
	if at := strings.LastIndexAny(line[limit/2:limit], ",;}]>"); at >= 0 {
		return limit/2 + at + 1
	}
	for limit > 1 && line[limit]&0xc0 == 0x80 {
		limit--
	}
	return limit
}

// count is the number of items, or of lines.
func (h *held) count() int {
	if h.items != nil {
		return len(h.items)
	}
	return len(h.units)
}

// noun is what count counts.
func (h *held) noun() string {
	switch {
	case h.items != nil:
		return "items"
	case h.merged:
		return "pieces"
	}
	return "lines"
}

// length is the size of one item or line, in bytes.
func (h *held) length(i int) int {
	if h.items != nil {
		return len(h.items[i]) + 1
	}
	return len(h.units[i])
}

// span is a choice of items or lines in their order: those from one to before
// another, or of a list where a grep made one.
type span struct {
	from, to int
	// list has the numbers of the items or lines, from and to count in it; nil =
	// all.
	list []int
}

// all are all items or lines.
func (h *held) all() span { return span{to: h.count()} }

func (s span) len() int { return s.to - s.from }

// at is the number of the nth item or line of the span.
func (s span) at(n int) int {
	if s.list != nil {
		return s.list[s.from+n]
	}
	return s.from + n
}

// first is the span up to its nth.
func (s span) first(n int) span {
	s.to = s.from + min(n, s.len())
	return s
}

// skip is the span without its first n.
func (s span) skip(n int) span {
	s.from += min(n, s.len())
	return s
}

// within reports whether items or lines have at most that many bytes together.
func (h *held) within(which span, size int) bool {
	for n := range which.len() {
		if size -= h.length(which.at(n)); size < 0 {
			return false
		}
	}
	return true
}

// part is the text of some of the items or lines.
func (h *held) part(which span) string {
	if h.items != nil && which.list == nil {
		return string(arrayOf(h.items[which.from:which.to]))
	}
	if h.items != nil {
		items := make([]json.RawMessage, which.len())
		for n := range items {
			items[n] = h.items[which.at(n)]
		}
		return string(arrayOf(items))
	}
	var out strings.Builder
	for n := range which.len() {
		i := which.at(n)
		out.WriteString(h.units[i])
		if n+1 < which.len() && which.at(n+1) != i+1 && !strings.HasSuffix(h.units[i], "\n") {
			out.WriteByte('\n') // two pieces of long lines that do not follow each other
		}
	}
	return out.String()
}
