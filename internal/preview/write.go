package preview

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// Look is what a reader gets first of a list that is too long.
type Look struct {
	// Items are the first items without the members that are left out. A string or array that is shortened ends with Mark and the
	// number of characters or elements that are missing. Mark alone stands for an item, or an element of an array, of which nothing
	// is shown.
	Items []string
	// Constant is an object with members that are the same in all items and are left out there; empty if there are none.
	Constant string
	// LeftOut names the members that are shown neither in the items nor in Constant; empty if there are none.
	LeftOut string
	// Mark is the text that marks shortened values; empty if no value is shortened.
	Mark string
}

// Look shortens the first items according to p, which must be the last plan that d has made.
func (d *Items) Look(p Plan) Look {
	w := &writer{Items: d, Plan: p}
	look := Look{Items: make([]string, p.items)}
	for i, at := range d.at[:p.items] {
		w.out = w.out[:0]
		if d.members {
			w.out = append(wire.AppendQuoted(w.out, d.doc.Str(d.doc.Nodes[at].Key)), ':')
		}
		if !w.value(d.root, at) {
			w.shortened("", -1)
		}
		look.Items[i] = string(w.out)
	}
	if w.out = w.out[:0]; w.constants(d.root) {
		look.Constant = string(w.out)
	}
	if w.marked {
		look.Mark = d.marks[0]
	}
	look.LeftOut = d.leftOut()
	return look
}

// writer writes what a plan keeps of items.
type writer struct {
	*Items
	Plan
	out    []byte
	marked bool // a value was shortened
}

// value writes what is kept of a value. If nothing is kept, it writes nothing and returns false.
func (w *writer) value(c *column, at int32) bool {
	n := &w.doc.Nodes[at]
	switch {
	case c == nil:
		return false
	case n.Count == 0:
		if c.keep && !c.constant {
			w.quote(at)
			return true
		}
		return false
	case n.Kind == wire.Object:
		return w.object(c, at)
	}
	return w.array(c, at)
}

func (w *writer) object(c *column, at int32) bool {
	start, open := len(w.out), byte('{')
	for kid := at + 1; kid < w.doc.Nodes[at].Next; kid = w.doc.Nodes[kid].Next {
		before, key := len(w.out), w.doc.Str(w.doc.Nodes[kid].Key)
		w.out = append(wire.AppendQuoted(append(w.out, open), key), ':')
		if open = ','; !w.value(c.fields[key], kid) {
			if w.out = w.out[:before]; before == start {
				open = '{'
			}
		}
	}
	if len(w.out) == start {
		return false
	}
	w.out = append(w.out, '}')
	return true
}

func (w *writer) array(c *column, at int32) bool {
	start, i, written, marked := len(w.out), 0, false, w.marked
	for kid := at + 1; kid < w.doc.Nodes[at].Next && i < counts[w.count]; kid = w.doc.Nodes[kid].Next {
		if i++; i == 1 {
			w.out = append(w.out, '[')
		} else {
			w.out = append(w.out, ',')
		}
		if w.value(c.elements, kid) {
			written = true
		} else {
			w.shortened("", -1)
		}
	}
	if !written {
		w.out, w.marked = w.out[:start], marked
		return false
	}
	if left := int(w.doc.Nodes[at].Count) - i; left > 0 {
		w.out = append(w.out, ',')
		w.shortened("", left)
	}
	w.out = append(w.out, ']')
	return true
}

func (w *writer) quote(at int32) {
	text := w.scalar(at)
	if w.doc.Nodes[at].Kind != wire.String {
		w.out = append(w.out, text...)
		return
	}
	// A string that is only a little too long is not cut, since the mark needs space too.
	if length := lengths[w.length]; len(text) > length+length/8 {
		for length > 0 && !utf8.RuneStart(text[length]) {
			length--
		}
		all, known := w.runes[at]
		if !known {
			all = utf8.RuneCountInString(text)
			w.runes[at] = all
		}
		w.shortened(text[:length], all-utf8.RuneCountInString(text[:length]))
		return
	}
	w.out = wire.AppendQuoted(w.out, text)
}

// shortened writes a JSON string: text, the mark, and the number of characters or elements that are left out (omitted). If omitted
// is negative, the number is not written.
func (w *writer) shortened(text string, omitted int) {
	w.marked = true
	if text += w.marks[0]; omitted >= 0 {
		text += strconv.Itoa(omitted)
	}
	w.out = wire.AppendQuoted(w.out, text)
}

// constants writes those members of the objects in c that the plan keeps and that are the same in all items. If there are none,
// it writes nothing and returns false.
func (w *writer) constants(c *column) bool {
	start := len(w.out)
	for _, f := range c.inner {
		before := len(w.out)
		if before == start {
			w.out = append(w.out, '{')
		} else {
			w.out = append(w.out, ',')
		}
		w.out = append(wire.AppendQuoted(w.out, f.key), ':')
		switch {
		case f.keep && f.constant:
			w.quote(f.first)
		case !w.constants(f):
			w.out = w.out[:before]
		}
	}
	if len(w.out) == start {
		return false
	}
	w.out = append(w.out, '}')
	return true
}

// maxLeftOut is how many paths [Look.LeftOut] names at most. maxSiblings is how many paths of members of the same object it names,
// unless the object is an item itself. Further paths are only counted.
const maxLeftOut, maxSiblings = 10, 4

// leftOut returns the paths of the columns that are left out. If a column and everything below it are left out, it
// returns only the path of that column.
func (d *Items) leftOut() string {
	kept := map[*column]bool{d.root: true} // columns of which something is kept
	for _, c := range d.columns {
		for p := c; c.keep && !kept[p]; p = p.parent {
			kept[p] = true
		}
	}
	var lost []*column
	siblings := map[*column]int{}
	for _, c := range d.columns {
		if !kept[c] && kept[c.parent] || kept[c] && c.valued() && !c.keep {
			lost = append(lost, c)
			siblings[c.parent]++
		}
	}
	var paths []string
	more := 0
	counted := map[*column]bool{}
	for _, c := range lost {
		path := c.path()
		switch n := siblings[c.parent]; {
		case path == "":
			more++
		case n <= maxSiblings || c.parent == d.root:
			paths = append(paths, path)
		case !counted[c.parent]:
			paths = append(paths, fmt.Sprintf("%d of %d members of %s", n, len(c.parent.inner), c.parent.path()))
			counted[c.parent] = true
		}
	}
	if n := len(paths) - maxLeftOut; n > 0 {
		more, paths = more+n, paths[:maxLeftOut]
	}
	if more > 0 {
		paths = append(paths, strconv.Itoa(more)+" more")
	}
	if d.beyond { // these have no column, so they are not counted
		paths = append(paths, "further or deeper members")
	}
	return strings.Join(paths, ", ")
}

// path returns the path of a column, as jq writes it. It is "." for the items themselves, and empty if it is too long to be
// shown.
func (c *column) path() string {
	size := 0
	for p := c; p.parent != nil; p = p.parent {
		size += len(p.key) + 1
	}
	switch {
	case size > maxLine:
		return ""
	case c.parent == nil:
		return "."
	}
	before := c.parent.path()
	if before == "." {
		before = ""
	}
	if c.parent.elements == c {
		return before + "[]"
	}
	return before + compress.Step(c.key)
}
