package pages

import (
	"encoding/json"
	"strings"

	"mcpx/internal/compress"
)

// divide makes a result of a text. The parts of an array are its items. Those of
// anything else, and of an array of very many, are the lines of the text as the
// model gets it, which for a table in an object are its rows.
func (p Pages) divide(text, shown string, verbatim bool) *result {
	h := &result{principal: p.Principal, verbatim: verbatim}
	if value, ok := compress.Value(text); ok && (value[0] == '[' || value[0] == '{') {
		h.value = value
	}
	if h.value != nil && h.value[0] == '[' && !verbatim {
		if items, ok := arrayItems(h.value, maxItems); ok && len(items) > 1 {
			h.items = items
			return h
		}
	}
	// No text has more tokens than bytes: a piece of a line always fits.
	h.units, h.merged = unitsOf(shown, min(max(p.limit()-minRoom, 64), pieceBytes), maxLines)
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
func (h *result) count() int {
	if h.items != nil {
		return len(h.items)
	}
	return len(h.units)
}

// noun is what count counts.
func (h *result) noun() string {
	switch {
	case h.items != nil:
		return "items"
	case h.merged:
		return "pieces"
	}
	return "lines"
}

// length is the size of one item or line, in bytes.
func (h *result) length(i int) int {
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
func (h *result) all() span { return span{to: h.count()} }

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
func (h *result) within(which span, size int) bool {
	for n := range which.len() {
		if size -= h.length(which.at(n)); size < 0 {
			return false
		}
	}
	return true
}

// part is the text of some of the items or lines.
func (h *result) part(which span) string {
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
