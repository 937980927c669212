package results

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// list is the part of a JSON value that is shown and read piece by piece: the elements of an array, the members of an object, the
// objects of JSON Lines, or the lines of a string. In a value such as {"total":900,"data":{"rows":[…]}} the list is the inner
// array, since this array is nearly all of the value.
type list struct {
	// items are slices of the value. A member of an object includes its key. items is nil if there is no list, or if the list
	// consists of the lines of a JSON string.
	items []json.RawMessage
	// path is the jq path to the list; empty if the list is the whole value, or if the path is too long or not valid UTF-8.
	path  string
	inner int // how many arrays and objects the list is inside of
	// head is the part of the value before the first item, and tail the part after the last item. If the list consists of the
	// lines of a JSON string, head is the part before the string, and tail the part after the string.
	head, tail string
	quoted     bool // the list consists of the lines of a JSON string
	// before and after are the text around the value, if the value is JSON within a longer text.
	before, after string
	// asLines means that the items are shown as lines; otherwise they are enclosed in open and close.
	asLines     bool
	open, close string
}

const (
	// maxListDepth is how many arrays and objects deep a list is searched for. To go one level deeper, mcpx has to read the whole
	// array or object.
	maxListDepth = 8
	maxPath      = 60 // bytes; a longer path to a list is left out
)

// place is a range of bytes in a value.
type place struct{ start, end int }

// listIn finds the list in h.value and divides h into the items of the list. If the list consists of the lines of a JSON string,
// h is divided into these lines. listIn returns false if there is no list. To find the list, it goes from the value to the
// largest part of the value, then to the largest part of that part, and so on, at most maxListDepth deep. It goes no deeper if
// what is around the next part would need more than a third of the room for the first page.
func (p Pages) listIn(h *result) bool {
	value, room := h.value, p.limit()/3
	if p.Preview > 0 {
		room = min(room, p.Preview/3)
	}
	at, path := place{0, len(value)}, ""
	var best place // the list that was found: an array or object with several parts, described by found, or a string
	var found outline
	for depth := range maxListDepth {
		o, ok := outlineOf(value[at.start:at.end])
		if !ok {
			break
		}
		if len(o.parts) > 1 {
			best, found, h.path, h.inner = at, o, path, depth
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
			// A string beside other members must be a large part of the value, and must have several lines.
			if found.parts == nil || 3*len(text) > len(value) && bytes.Contains(text, []byte(`\n`)) {
				best, h.path, h.inner = at, path, depth+1
			}
			break
		}
	}
	if best.end == 0 {
		return false
	}
	if len(h.path) > maxPath || !utf8.ValidString(h.path) {
		h.path = ""
	}
	if value[best.start] == '"' {
		return p.linesIn(h, best)
	}
	h.fill(value, best, found)
	return true
}

// linesIn splits the string at this place in the value into lines, which become the units of h. It returns false if a Go string
// cannot hold the text.
func (p Pages) linesIn(h *result, at place) bool {
	text, ok := wire.WholeText(h.value[at.start:at.end])
	if ok {
		h.head, h.tail, h.quoted = string(h.value[:at.start]), string(h.value[at.end:]), true
		h.units, h.kind = p.unitsOf(text)
	}
	return ok
}

// sheds reports whether the value weighs at most room if the part at the place inner is removed.
func (p Pages) sheds(value json.RawMessage, inner place, room int) bool {
	if len(value)-(inner.end-inner.start) > likelyBytes*room {
		return false
	}
	around := string(value[:inner.start]) + "0" + string(value[inner.end:])
	return p.weigh(compress.Text(around, p.Texts).Text) <= room
}

// outline describes the parts of an array or object. The array or object is called the container of the parts.
type outline struct {
	parts    []json.RawMessage // elements, or members with their keys
	from, to int               // where the first part begins, and where the last ends
	largest  place             // the largest element, or the largest value of a member
	// step is the jq step to the largest part. It is empty if that part is a number or a literal. It is also empty if that part
	// is one of several elements of an array, since these are all alike.
	step string
}

// outlineOf outlines an array or object. ok is false if the container is empty, has more than maxItems parts, or is invalid.
func outlineOf(container json.RawMessage) (o outline, ok bool) {
	largest := ""
	part := func(key string, start, end int) bool {
		if end-start > o.largest.end-o.largest.start {
			o.largest, largest = place{start, end}, key
		}
		if container[0] == '{' {
			after := max(o.to, 1)
			start = end - len(bytes.TrimLeft(container[after:end], ", \t\r\n"))
		}
		if len(o.parts) == 0 {
			o.from = start
		}
		if n := len(o.parts); n == cap(o.parts) && n >= 256 {
			// Allocate for the expected number of parts now: to grow in many steps would take several times the memory.
			o.parts = slices.Grow(o.parts, min(n*(len(container)-start)/start+n/8, maxItems))
		}
		o.parts, o.to = append(o.parts, container[start:end:end]), end
		return len(o.parts) <= maxItems
	}
	var err error
	array := container[0] == '['
	if array {
		err = wire.ElementsAt(container, func(start, end int) bool { return part("", start, end) })
	} else {
		err = wire.FieldsAt(container, part)
	}
	if err != nil || len(o.parts) == 0 || len(o.parts) > maxItems {
		return o, false
	}
	switch c := container[o.largest.start]; {
	case c != '[' && c != '{' && c != '"':
	case !array:
		o.step = compress.Step(largest)
	case len(o.parts) == 1:
		o.step = "[0]"
	}
	return o, true
}

// fill sets the items of l to the parts of the container at this place in value. o is the outline of the container.
func (l *list) fill(value json.RawMessage, at place, o outline) {
	if l.items = o.parts; cap(l.items) > len(l.items)+len(l.items)/4 {
		l.items = slices.Clone(l.items)
	}
	l.open, l.close = "[", "]"
	if value[at.start] == '{' {
		l.open, l.close = "{", "}"
	}
	l.head, l.tail = string(value[:at.start+o.from]), string(value[at.start+o.to:])
}

// around returns what is around the list: the value without its items, as compact JSON, and the text around the value. It is
// empty if there is nothing but the items.
func (l *list) around() string {
	around := ""
	switch {
	case l.quoted:
		around = compress.Text(l.head+`""`+l.tail, compress.Options{}).Text
	case l.items != nil && len(l.head)+len(l.tail) > len(l.open)+len(l.close):
		around = compress.Text(l.head+l.tail, compress.Options{}).Text
	}
	return l.before + around + l.after
}

// text renders some items. If the parameter whole is true, it includes everything around the list.
func (l *list) text(items []json.RawMessage, whole bool) string {
	if l.asLines {
		return joined("", items, "\n", "")
	}
	if whole {
		return l.before + l.json(items, true) + l.after
	}
	return l.json(items, false)
}

// json renders some items as JSON. If the parameter whole is true, it includes everything around the list.
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

// The shape of a list is derived from its first shapeFirst items and from shapeOthers items spread over the rest. If the items
// are long, fewer are read: about shapeBytes bytes in all, but never fewer than 3*shapeLeast items.
const (
	shapeFirst  = 100
	shapeOthers = 200
	shapeLeast  = 20
	shapeBytes  = 128 << 10
)

// shape describes which keys and types the value has. The description has at most limit tokens.
func (h *result) shape(limit int) string {
	switch {
	case h.quoted:
		return compress.Shape([]byte(h.head+`""`+h.tail), limit)
	case h.items == nil:
		return compress.Shape(h.value, limit)
	}
	some, size := h.items, 0
	for _, item := range h.items[:min(len(h.items), shapeFirst)] {
		size += len(item)
	}
	first, others := shapeFirst, shapeOthers
	if all := 3 * size; all > shapeBytes { // the size of the first items and the others together, estimated from the first
		first = max(shapeLeast, first*shapeBytes/all)
		others = 2 * first
	}
	if n := len(h.items); n > first+others {
		some = slices.Clone(h.items[:first])
		for i := range others {
			some = append(some, h.items[first+i*(n-first)/others])
		}
	}
	head, tail := h.head, h.tail
	if h.asLines {
		head, tail = "[", "]"
	}
	return compress.ShapeOf(head, some, tail, len(h.items), limit)
}
