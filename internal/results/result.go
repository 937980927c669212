package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// divide makes a result of a text. The result is divided into the items of a list if the text is JSON with a list, or contains
// exactly one piece of JSON and this piece has a list and is at least half of the text. If the text is a JSON string with several
// lines, the result is divided into these lines. Otherwise, and for very long lists and verbatim results, the result is divided into
// the lines of the parameter compressed, which is the text as the model sees it.
func (p Pages) divide(text, compressed string, verbatim bool) *result {
	h := &result{principal: p.Principal, origin: p.Origin, verbatim: verbatim}
	if value, lines, ok := compress.Value(text); ok && (value[0] == '[' || value[0] == '{') {
		h.value = value
		if !verbatim && p.listIn(h) {
			h.asLines = lines
			return h
		}
	} else if plain, pieces := compress.Pieces(text); len(pieces) > 0 && !verbatim {
		h.value = valueOf(pieces)
		if piece := pieces[0]; len(pieces) == 1 && 2*(piece.End-piece.Start) >= len(plain) && p.listIn(h) {
			h.before, h.after = plain[:piece.Start], plain[piece.End:]
			return h
		}
	} else if ok && value[0] == '"' && !verbatim {
		h.value = value
		if bytes.Contains(value, []byte(`\n`)) && p.linesIn(h, place{0, len(value)}) {
			return h
		}
	}
	h.units, h.kind = p.unitsOf(compressed)
	return h
}

// valueOf returns the JSON in a text: the JSON piece if there is only one, or else an array of the pieces.
func valueOf(pieces []compress.Piece) json.RawMessage {
	all := make([]json.RawMessage, len(pieces))
	for i, piece := range pieces {
		all[i] = piece.Value
	}
	return together(all)
}

// unitsOf splits a text into units that fit into the limit: lines, parts of long lines, or several lines. It measures
// them in bytes, since no text has more tokens than bytes.
func (p Pages) unitsOf(text string) (units []string, kind unitKind) {
	longest := p.limit() - p.minRoom()
	if p.Bytes > 0 {
		longest = min(longest, p.Bytes/4)
	}
	return unitsOf(text, min(max(longest, 64), pieceBytes), maxLines)
}

// unitKind says into what kind of units a text is divided.
type unitKind uint8

const (
	// lines: each unit is a line with its line end.
	lines unitKind = iota
	// rows: each unit is a line, or a row of a list that is on one long line.
	rows
	// pieces: some units are parts of a line, or each unit is several lines.
	pieces
)

// unitsOf splits a text into lines. A line with more bytes than longest is split into the rows of a list in it; if a row is too
// long, it is split too (see wordEnd). If the text has more than maxUnits lines, it is split into units of several lines, of up
// to longest bytes. Joined together, the units are the text again.
func unitsOf(text string, longest, maxUnits int) (units []string, kind unitKind) {
	count := strings.Count(text, "\n") + 1
	if count > maxUnits {
		return mergedLines(text, longest), pieces
	}
	units = make([]string, 0, count+len(text)/longest)
	for line := range strings.Lines(text) {
		if len(line) <= longest {
			units = append(units, line)
			continue
		}
		ends := rowEnds(line, maxUnits-count)
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

// mergedLines splits a text into units of several lines, up to longest bytes. It splits longer lines.
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

// rowEnds finds where the rows of a list on one line end, in JSON or a similar language. A row is text in brackets, followed by a
// comma and another text in the same kind of brackets. If lists are nested, rowEnds finds only the rows of the outermost list. If
// there are more than maxRows rows, rowEnds returns nil.
func rowEnds(line string, maxRows int) (ends []int) {
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
			if len(ends) == maxRows {
				return nil
			}
			ends = append(ends, len(line)-len(rest))
		}
	}
	return ends
}

// closing maps opening brackets to closing ones.
var closing = [256]byte{'[': ']', '{': '}', '(': ')'}

// wordEnd returns where to split a line, at or before limit. It looks for a space or tab in the half before limit, then for a
// comma, semicolon or closing bracket there, and splits after it. If there is none, it splits at limit, or before the character
// that limit is in.
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

// count returns the number of parts of the result: its items or, if it is not divided into items, its units of text (lines, rows or
// pieces).
func (h *result) count() int {
	if h.items != nil {
		return len(h.items)
	}
	return len(h.units)
}

// noun says what the parts are called: items, lines, rows or pieces, followed by the path of the list, if it has one.
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

// length returns the size of part i (an item, or a line, row or piece of text) in bytes. For an item, it counts a comma too.
func (h *result) length(i int) int {
	if h.items != nil {
		return len(h.items[i]) + 1
	}
	return len(h.units[i])
}

// matched returns a text that tells the model how many parts match a grep. The parameter count is how many of these parts are
// shown. If the span is numbered, the offsets of matching items are listed. Matching lines need no list, since each begins with its
// number.
func (h *result) matched(which span, count int) string {
	line := fmt.Sprintf("%d of %d %s match", len(which.list), h.count(), h.noun())
	if count < len(which.list) {
		line = fmt.Sprintf("%d shown, %s", count, line)
	}
	if h.items != nil && count > 0 && which.numbered {
		line += ", offset " + offsets(which.first(count))
	}
	return line
}

// maxOffsets is how many ranges a list of offsets may have.
const maxOffsets = 30

// offsets lists the numbers in a span, for example "3-5, 9". After maxOffsets ranges it ends with an ellipsis.
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

// span selects consecutive items or lines of a result, or consecutive matches of a grep.
type span struct {
	from, to int // to itself is not included
	// list has the numbers of the matching items or lines, and from and to are indexes into it. If list is nil, from and to are
	// numbers of items or lines.
	list []int
	// numbered means that the offsets of matching items are listed, because there is a handle with which the client can read the
	// items around the matches. Matching lines always have their numbers.
	numbered bool
	// whole means that the items or lines are shown together with everything around them: the JSON that contains the list, and the
	// text around this JSON. In a span that a grep made, whole is set only if the grep matches something there too.
	whole bool
}

// all selects all items or lines.
func (h *result) all() span { return span{to: h.count(), whole: true} }

func (s span) len() int { return s.to - s.from }

// at returns the number of the span's nth item or line.
func (s span) at(n int) int {
	if s.list != nil {
		return s.list[s.from+n]
	}
	return s.from + n
}

// first returns a span of the first n items or lines of s.
func (s span) first(n int) span {
	s.to = s.from + min(n, s.len())
	return s
}

// skip returns the span s without its first n items or lines. If n is not 0, what is around the list is not shown either.
func (s span) skip(n int) span {
	s.from += min(n, s.len())
	s.whole = s.whole && n == 0
	return s
}

// within reports whether the items or lines together have at most size bytes.
func (h *result) within(which span, size int) bool {
	for n := range which.len() {
		if size -= h.length(which.at(n)); size < 0 {
			return false
		}
	}
	return true
}

// omitsMuch reports whether the parts that do not match a grep are so long that it makes sense to offer them to the reader.
func (h *result) omitsMuch(which span) bool {
	size := aroundBytes
	for n := range which.len() {
		size += h.length(which.at(n))
	}
	return which.list != nil && !h.within(h.all(), size)
}

// aroundBytes: omitsMuch returns true if more than this many bytes do not match.
const aroundBytes = 1000

// chosen returns the selected items.
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

// part renders the selected items or lines.
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
		// Each match is on a line that begins with its number, which is its offset+1.
		out.WriteString(strconv.Itoa(which.at(n)+1) + ":" + unit)
		if n+1 < which.len() && !strings.HasSuffix(unit, "\n") {
			out.WriteByte('\n')
		}
	}
	if h.quoted && which.whole {
		return h.before + h.head + string(wire.AppendQuoted(nil, out.String())) + h.tail + h.after
	}
	return out.String()
}

// goesOn reports whether the last unit of a span has no line end, so that its line goes on in the next unit, if there is one.
func (h *result) goesOn(which span) bool {
	return h.items == nil && which.len() > 0 && !strings.HasSuffix(h.units[which.at(which.len()-1)], "\n")
}
