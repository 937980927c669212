package executor

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"sync"
	"time"
)

const (
	// heldBytes and heldAge bound what is kept of long results. The newest is
	// kept also where it is longer alone: it is bounded by what one message is.
	heldBytes = 128 << 20
	heldAge   = 30 * time.Minute
	// pieceBytes is the longest line that is one unit, with a low limit less; a
	// longer one is several, parted between two words.
	pieceBytes = 4 << 10
)

// held is one result that did not fit, whole.
type held struct {
	// principal is whose it is; nobody else can read it.
	principal string
	// items are the elements of a JSON array; nil where the text is no array.
	items []json.RawMessage
	// units are the lines of a text, with their ends, where items is nil. A line
	// over pieceBytes is several.
	units []string
	// value is the JSON that select works on; nil where there is none.
	value json.RawMessage
	// verbatim texts stay as they are also in parts.
	verbatim bool

	size  int
	since time.Time
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

// put keeps h and returns its handle, which cannot be guessed. The oldest
// results make room.
func (s *store) put(h *held) string {
	handle := "r" + strings.ToLower(rand.Text()[:20])
	h.since = time.Now()
	h.size = len(h.value)
	for _, item := range h.items {
		h.size += len(item) + sliceBytes
	}
	for _, unit := range h.units {
		h.size += len(unit) + sliceBytes
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = make(map[string]*held)
	}
	s.byID[handle] = h
	s.order = append(s.order, handle)
	s.bytes += h.size
	for len(s.order) > 1 && s.bytes > heldBytes {
		s.dropOldest()
	}
	if s.timer == nil {
		s.timer = time.AfterFunc(heldAge, s.expire)
	}
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

// hold makes what is kept of a text: of an array its items, of anything else the
// lines of the text as the model gets it, which for a table in an object are its
// rows.
func (e *Executor) hold(text, shaped string, verbatim bool, principal string) *held {
	h := &held{principal: principal, verbatim: verbatim}
	trimmed := strings.TrimSpace(text)
	isJSON := len(trimmed) > 0 && (trimmed[0] == '[' || trimmed[0] == '{') && json.Valid([]byte(trimmed))
	if isJSON {
		h.value = json.RawMessage(trimmed)
	}
	if isJSON && trimmed[0] == '[' && !verbatim {
		if items, err := arrayItems(h.value); err == nil && len(items) > 1 {
			h.items = items
			return h
		}
	}
	// No text has more tokens than bytes: a piece of a line always fits.
	h.units = unitsOf(shaped, min(max(e.limit()-minRoom, 64), pieceBytes))
	return h
}

// unitsOf parts a text into lines, and lines over longest bytes between two
// words. Together the parts are the text.
func unitsOf(text string, longest int) []string {
	var units []string
	for line := range strings.SplitAfterSeq(text, "\n") {
		for len(line) > longest {
			cut := wordEnd(line, longest)
			units = append(units, line[:cut])
			line = line[cut:]
		}
		if line != "" {
			units = append(units, line)
		}
	}
	return units
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
	if h.items != nil {
		return "items"
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

// within reports whether items or lines have at most that many bytes together.
func (h *held) within(which []int, size int) bool {
	for _, i := range which {
		if size -= h.length(i); size < 0 {
			return false
		}
	}
	return true
}

// part is the text of some of the items or lines.
func (h *held) part(which []int) string {
	if h.items != nil {
		items := make([]json.RawMessage, len(which))
		for n, i := range which {
			items[n] = h.items[i]
		}
		return string(arrayOf(items))
	}
	var out strings.Builder
	for n, i := range which {
		out.WriteString(h.units[i])
		if n+1 < len(which) && which[n+1] != i+1 && !strings.HasSuffix(h.units[i], "\n") {
			out.WriteByte('\n') // two pieces of long lines that do not follow each other
		}
	}
	return out.String()
}
