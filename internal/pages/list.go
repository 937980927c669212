package pages

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpx/internal/compress"
	"mcpx/internal/wire"
)

// list is the part of a JSON value that a reader pages through: the elements of an array,
// the members of an object, the objects of JSON Lines, or the lines of a string. In a value
// such as {"total":900,"data":{"rows":[…]}} it is the inner array, which is nearly all of
// it.
type list struct {
	// items are parts of the value, a member with its key; nil if there is no list, or
	// it is a string.
	items []json.RawMessage
	// path leads from the value to the list, as jq writes it; empty if the value is the
	// list, or the path is long.
	path  string
	inner int // the number of containers around the list
	// head and tail are the value before the first and after the last item, or around the
	// string.
	head, tail string
	quoted     bool // the list is a string
	// asLines means that the items are shown as lines; otherwise open and close make JSON
	// of them.
	asLines     bool
	open, close string
}

const (
	// maxListDepth bounds the containers around a list, as each of them is read.
	maxListDepth = 8
	maxPath      = 60 // bytes
)

// place is a part of a value, in bytes.
type place struct{ start, end int }

// listIn finds the list in the value of h: it goes inwards while one part is nearly all
// of the value, and the rest would be a small part of the first look.
func (p Pages) listIn(h *result) bool {
	value, room := h.value, p.limit()/3
	if p.Preview > 0 {
		room = min(room, p.Preview/3)
	}
	at, path := place{0, len(value)}, ""
	var best place // with count items, or a string
	count := 0
	for depth := range maxListDepth {
		o, ok := outlineOf(value[at.start:at.end])
		if !ok {
			break
		}
		if o.count > 1 {
			best, count, h.path, h.inner = at, o.count, path, depth
		}
		inner := place{at.start + o.largest.start, at.start + o.largest.end}
		if o.step == "" || !p.sheds(value, inner, room) {
			break
		}
		if path == "" && o.step[0] == '[' {
			path = "."
		}
		at, path = inner, path+o.step
		if text := value[at.start:at.end]; text[0] == '"' {
			// A string among others has to be much of the value, and several lines.
			if count == 0 || 3*len(text) > len(value) && bytes.Contains(text, []byte(`\n`)) {
				best, count, h.path, h.inner = at, 1, path, depth+1
			}
			break
		}
	}
	if count == 0 {
		return false
	}
	if len(h.path) > maxPath || !utf8.ValidString(h.path) {
		h.path = ""
	}
	if value[best.start] == '"' {
		return p.linesIn(h, best)
	}
	h.fill(value, best, count)
	return true
}

// linesIn makes the lines of a string in the value the parts of h.
func (p Pages) linesIn(h *result, at place) bool {
	text, ok := wire.WholeText(h.value[at.start:at.end])
	if ok {
		h.head, h.tail, h.quoted = string(h.value[:at.start]), string(h.value[at.end:]), true
		h.units, h.kind = p.unitsOf(text)
	}
	return ok
}

// sheds reports whether all of a value but one part weighs at most room.
func (p Pages) sheds(value json.RawMessage, inner place, room int) bool {
	if len(value)-(inner.end-inner.start) > likelyBytes*room {
		return false
	}
	around := string(value[:inner.start]) + "0" + string(value[inner.end:])
	return p.weigh(compress.Text(around, p.Texts).Text) <= room
}

// outline is the number of parts of a container, and the largest.
type outline struct {
	count   int
	largest place
	// step leads to the largest, as jq writes it. It is empty if the largest is a number or
	// a word, or an element among others: those are all alike.
	step string
}

// outlineOf outlines an array or object of at most maxItems parts.
func outlineOf(container json.RawMessage) (o outline, ok bool) {
	largest := ""
	part := func(key string, start, end int) bool {
		if o.count++; end-start > o.largest.end-o.largest.start {
			o.largest, largest = place{start, end}, key
		}
		return o.count <= maxItems
	}
	var err error
	array := container[0] == '['
	if array {
		err = wire.ElementsAt(container, func(start, end int) bool { return part("", start, end) })
	} else {
		err = wire.FieldsAt(container, part)
	}
	if err != nil || o.count == 0 || o.count > maxItems {
		return o, false
	}
	switch c := container[o.largest.start]; {
	case c != '[' && c != '{' && c != '"':
	case !array:
		o.step = compress.Step(largest)
	case o.count == 1:
		o.step = "[0]"
	}
	return o, true
}

// fill fills in the count items of the container at a place of the value.
func (l *list) fill(value json.RawMessage, at place, count int) {
	container := value[at.start:at.end]
	l.items = make([]json.RawMessage, 0, count) // growing would take several times the memory
	from, to := 1, 1
	add := func(start, end int) bool {
		if len(l.items) == 0 {
			from = start
		}
		l.items, to = append(l.items, container[start:end:end]), end
		return true
	}
	if container[0] == '[' {
		l.open, l.close = "[", "]"
		_ = wire.ElementsAt(container, add) // read before
	} else {
		l.open, l.close = "{", "}"
		_ = wire.FieldsAt(container, func(_ string, _, end int) bool {
			return add(end-len(bytes.TrimLeft(container[to:end], ", \t\r\n")), end)
		})
	}
	l.head, l.tail = string(value[:at.start+from]), string(value[at.start+to:])
}

// around is the value without its items, as the model sees it; empty if nothing is around
// them.
func (l *list) around() string {
	switch {
	case l.quoted:
		return compress.Text(l.head+`""`+l.tail, compress.Options{}).Text
	case l.items == nil || len(l.head)+len(l.tail) <= len(l.open)+len(l.close):
		return ""
	}
	return compress.Text(l.head+l.tail, compress.Options{}).Text
}

// text is the text of some items, if whole with all that is around the list.
func (l *list) text(items []json.RawMessage, whole bool) string {
	if l.asLines {
		return joined("", items, "\n", "")
	}
	return l.json(items, whole)
}

// json is the JSON of some items, if whole with all that is around the list.
func (l *list) json(items []json.RawMessage, whole bool) string {
	if whole {
		return joined(l.head, items, ",", l.tail)
	}
	return joined(l.open, items, ",", l.close)
}

func joined(open string, items []json.RawMessage, between, close string) string {
	size := len(open) + len(close)
	for _, item := range items {
		size += len(item) + len(between)
	}
	var out strings.Builder
	out.Grow(size)
	out.WriteString(open)
	for i, item := range items {
		if i > 0 {
			out.WriteString(between)
		}
		out.Write(item)
	}
	out.WriteString(close)
	return out.String()
}

// A shape is that of the first items, and of others over the whole list.
const (
	shapeFirst  = 100
	shapeOthers = 200
)

// shape is the shape of the value, in tokens.
func (h *result) shape(most int) string {
	switch {
	case h.quoted:
		return compress.Shape([]byte(h.head+`""`+h.tail), most)
	case h.items == nil:
		return compress.Shape(h.value, most)
	}
	some := h.items
	if n := len(h.items); n > shapeFirst+shapeOthers {
		some = slices.Clone(h.items[:shapeFirst])
		for i := range shapeOthers {
			some = append(some, h.items[shapeFirst+i*(n-shapeFirst)/shapeOthers])
		}
	}
	head, tail := h.head, h.tail
	if h.asLines {
		head, tail = "[", "]"
	}
	return compress.ShapeOf(head, some, tail, len(h.items), most)
}
