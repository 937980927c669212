package results

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// divide makes a result of a text. The parts of JSON are the items of its list. The parts
// of any other text, and of a very long list, are the lines of the text as the model gets
// it.
func (p Pages) divide(text, shown string, verbatim bool) *result {
	h := &result{principal: p.Principal, verbatim: verbatim}
	if value, lines, ok := compress.Value(text); ok && (value[0] == '[' || value[0] == '{') {
		h.value = value
		if !verbatim && p.listIn(h) {
			h.asLines = lines
			return h
		}
	}
	h.units, h.kind = p.unitsOf(shown)
	return h
}

// unitsOf splits a text. No text has more tokens than bytes: a piece of a line always
// fits.
func (p Pages) unitsOf(text string) (units []string, kind unitKind) {
	longest := p.limit() - p.minRoom()
	if p.Bytes > 0 {
		longest = min(longest, p.Bytes/4)
	}
	return unitsOf(text, min(max(longest, 64), pieceBytes), maxLines)
}

// unitKind is the kind of the units of a text.
type unitKind uint8

const (
	// lines include their line ends.
	lines unitKind = iota
	// rows are lines, or rows of a list on one long line.
	rows
	// pieces are parts of lines, or several lines.
	pieces
)

// unitsOf splits a text into lines. It splits lines over longest bytes into rows, and
// longer rows between two words. If there are over most lines, it merges lines up to
// longest bytes. The units together are the text.
func unitsOf(text string, longest, most int) (units []string, kind unitKind) {
	count := strings.Count(text, "\n") + 1
	if count > most {
		return mergedLines(text, longest), pieces
	}
	units = make([]string, 0, count+len(text)/longest)
	for line := range strings.Lines(text) {
		if len(line) <= longest {
			units = append(units, line)
			continue
		}
		ends := rowEnds(line, most-count)
		if count += len(ends); len(ends) > 0 {
			kind = max(kind, rows)
		}
		at := 0
		for _, end := range append(ends, len(line)) {
			for end-at > longest {
				kind = pieces
				next := at + wordEnd(line[at:end], longest)
				units = append(units, line[at:next])
				at = next
			}
			units = append(units, line[at:end])
			at = end
		}
	}
	return units, kind
}

// mergedLines splits a text into units of several lines, up to longest bytes.
func mergedLines(text string, longest int) (units []string) {
	units = make([]string, 0, 2*len(text)/longest+1)
	for text != "" {
		end := len(text)
		if end > longest {
			if end = strings.LastIndexByte(text[:longest], '\n') + 1; end == 0 {
				end = wordEnd(text, longest)
			}
		}
		units = append(units, text[:end])
		text = text[end:]
	}
	return units
}

// rowEnds finds the ends of the rows of a list on one line, in JSON or a similar
// language. A row is a container that a comma and another container of its kind follow.
// If lists are nested, only the rows of the outermost count. A list of more than most
// rows has none.
func rowEnds(line string, most int) (ends []int) {
	start := max(0, strings.IndexAny(line, "[{("))
	level, outermost := 0, len(line)
	quote := byte(0)
	for i := start; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[' || c == '{' || c == '(':
			level++
		case c == ']' || c == '}' || c == ')':
			level--
			rest, comma := strings.CutPrefix(line[i+1:], ",")
			rest = strings.TrimLeft(rest, " ")
			if !comma || rest == "" || closing[rest[0]] != c || level > outermost {
				continue
			}
			if level < outermost {
				outermost, ends = level, ends[:0]
			}
			if len(ends) == most {
				return nil
			}
			ends = append(ends, len(line)-len(rest))
		}
	}
	return ends
}

// closing has the closing bracket of each opening one.
var closing = [256]byte{'[': ']', '{': '}', '(': ')'}

// wordEnd is the last end of a word at or before limit, or the last end of a character
// if there is none.
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

// noun names the parts: items, lines, rows or pieces.
func (h *result) noun() string {
	noun := "items"
	if h.items == nil {
		noun = [...]string{lines: "lines", rows: "rows", pieces: "pieces"}[h.kind]
	}
	if h.path != "" {
		noun += " of " + h.path
	}
	return noun
}

// length is the size of one item or line, in bytes.
func (h *result) length(i int) int {
	if h.items != nil {
		return len(h.items[i]) + 1
	}
	return len(h.units[i])
}

// matched says how many parts match a grep, and how many of them are shown. Lines have
// their numbers, items are named by their offsets.
func (h *result) matched(which span, shown int) string {
	line := fmt.Sprintf("%d of %d %s match", len(which.list), h.count(), h.noun())
	if shown < len(which.list) {
		line = fmt.Sprintf("%d shown, %s", shown, line)
	}
	if h.items != nil && shown > 0 {
		line += ", offset " + offsets(which.first(shown))
	}
	return line
}

// maxOffsets bounds the ranges in a list of offsets.
const maxOffsets = 30

// offsets are the numbers in a span: 3-5, 9.
func offsets(which span) string {
	var out strings.Builder
	ranges := 0
	for n := 0; n < which.len(); n++ {
		if ranges++; ranges > maxOffsets {
			out.WriteString(", …")
			break
		}
		if n > 0 {
			out.WriteString(", ")
		}
		from := which.at(n)
		out.WriteString(strconv.Itoa(from))
		for n+1 < which.len() && which.at(n+1) == which.at(n)+1 {
			n++
		}
		if to := which.at(n); to > from {
			out.WriteString("-" + strconv.Itoa(to))
		}
	}
	return out.String()
}

// span selects items or lines in their order: a range of all, or of the matches of a
// grep.
type span struct {
	from, to int
	// list has the numbers of the matches, and from and to are indexes in it; nil means
	// that from and to are numbers themselves.
	list []int
	// whole means that items are shown within all that is around their list.
	whole bool
}

// all are all items or lines.
func (h *result) all() span { return span{to: h.count(), whole: true} }

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
	s.whole = s.whole && n == 0
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

// chosen are some of the items.
func (h *result) chosen(which span) []json.RawMessage {
	if which.list == nil {
		return h.items[which.from:which.to]
	}
	items := make([]json.RawMessage, which.len())
	for n := range items {
		items[n] = h.items[which.at(n)]
	}
	return items
}

// part is the text of some of the items or lines.
func (h *result) part(which span) string {
	if h.items != nil {
		return h.text(h.chosen(which), which.whole)
	}
	var out strings.Builder
	for n := range which.len() {
		unit := h.units[which.at(n)]
		if which.list == nil {
			out.WriteString(unit)
			continue
		}
		// A match has a line of its own with its number, which is offset+1.
		out.WriteString(strconv.Itoa(which.at(n)+1) + ":" + unit)
		if n+1 < which.len() && !strings.HasSuffix(unit, "\n") {
			out.WriteByte('\n')
		}
	}
	if h.quoted && which.whole {
		return h.head + string(wire.AppendQuoted(nil, out.String())) + h.tail
	}
	return out.String()
}

// goesOn reports whether a span ends within a line.
func (h *result) goesOn(which span) bool {
	return h.items == nil && which.len() > 0 && !strings.HasSuffix(h.units[which.at(which.len()-1)], "\n")
}
