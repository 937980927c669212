// Package preview shortens long results to what a reader gets of them first. It keeps as many items of a list as
// possible, and leaves out members of the items. It keeps both ends of a text, and says what is between them. The
// package does no I/O and has no state.
package preview

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// These are the limits of [Read].
const (
	maxColumns = 2000 // paths such as .user.login; values at further paths are left out
	maxLevels  = 16   // keys and arrays in a path; deeper values are left out
	maxSamples = 12   // of so many values of a column the tokens are counted, to estimate the tokens of all values
	sampleSize = 200  // bytes that are counted of each such value
	usualKey   = 40   // bytes; if a key has more, the estimates of Plan count its further bytes separately (see excess)
)

// lengths are the numbers of bytes to which long strings may be cut. With the last one, no string is cut.
var lengths = [...]int{40, 60, 80, 120, 160, 240, 320, 480, 640, 1000, 1500, 2500, 5000, 1 << 30}

// markBytes is about how many bytes are written in place of the end of a shortened string, such as …+1234.
const markBytes = 8

// counts are the numbers of elements to which long arrays within items may be cut. With the last one, no array is cut.
var counts = [...]int{3, 10, 30, 1 << 30}

// Items are the items of a list that is too long to be shown completely.
type Items struct {
	doc     *wire.Document
	members bool
	at      []int32 // index in doc.Nodes of each item
	root    *column
	columns []*column // in the order in which their paths first occur
	beyond  bool      // some values are in no column, because there are too many paths or levels
	marks   []string  // texts such as …+ that can mark shortened values, because the server has not sent them; the first is used
	seed    maphash.Seed
	runes   map[int32]int // number of characters of long strings, by index in doc.Nodes
}

// column has all values at one path, such as .user.login or .labels[].name. A value is a scalar, or an array or
// object that is empty. What is in other arrays and objects is in columns of its own.
type column struct {
	key      string
	parent   *column
	level    int
	listed   bool               // the values are within arrays
	excess   int                // number of bytes by which the keys of the path are longer than usualKey, added up
	fields   map[string]*column // the columns of the members of objects here, by key
	inner    []*column          // the fields, in the order in which they first occur
	elements *column            // the column of the elements of arrays here

	stats
	// keep and constant are what [Items.Plan] decided. keep means that the values are shown. constant means that they are the same
	// in all items, and so are shown only once, outside of the items.
	keep, constant bool
}

// stats describes the values of a column.
type stats struct {
	values [len(counts)]int  // values[i] counts the values among the first counts[i] elements of every array, except those in values[i-1]
	sizes  [len(lengths)]int // bytes of all values if strings are cut to lengths[i]
	first  int32             // index in doc.Nodes of the first value
	equal  bool              // all values are the same
	items  int               // number of items that have a value here
	last   int               // index of the last item that has a value here
	twice  bool              // an item has several values here
	// distinct has hashes of the values. Only columns of the items themselves and of their members have it.
	distinct map[uint64]struct{}
	urls     int    // strings that are URLs
	prose    int    // strings with spaces
	sum      uint64 // hash of all values, in order
	sample   strings.Builder
	sampled  int
	weight   float64 // tokens per byte
}

// Read reads the items of a list. They are JSON values or, if members is true, members of an object with their keys. around is
// what the model sees before and after the items; a mark that occurs in it is not used. ok is false if the items cannot be
// shortened.
func Read(items []json.RawMessage, members bool, around string) (d *Items, ok bool) {
	begin, end := byte('['), byte(']')
	if members {
		begin, end = '{', '}'
	}
	var text strings.Builder
	size := 1
	for _, item := range items {
		size += len(item) + 1
	}
	text.Grow(size)
	for _, item := range items {
		text.WriteByte(begin)
		text.Write(item)
		begin = ','
	}
	text.WriteByte(end)
	doc, ok := wire.Read(text.String())
	if !ok || doc.Lone || !doc.UTF8 {
		return nil, false
	}
	d = &Items{doc: doc, members: members, marks: slices.Clone(marks), runes: map[int32]int{}, seed: maphash.MakeSeed()}
	d.at = make([]int32, 0, len(items))
	d.root = d.column(nil, "")
	d.unmark(around)
	for at := int32(1); at < doc.Nodes[0].Next; at = doc.Nodes[at].Next {
		d.unmark(doc.Str(doc.Nodes[at].Key))
		d.add(d.root, at, 0)
		d.at = append(d.at, at)
	}
	for _, c := range d.columns {
		if text := c.sample.String(); text != "" {
			c.weight = float64(compress.Weigh(text)) / float64(len(text))
		}
		c.sample.Reset()
	}
	return d, len(d.at) == len(items) && len(d.marks) > 0
}

// Len returns the number of items.
func (d *Items) Len() int { return len(d.at) }

// marks are the texts with which a shortened value may end, before the number of missing characters or elements: …+1234. A text
// that occurs anywhere in what the server sent is not used, since a complete value could then look shortened.
var marks = []string{"…+", "⋯+", "‥+"}

// unmark removes from d.marks each text that occurs in the parameter text, which is from the server.
func (d *Items) unmark(text string) {
	if strings.IndexByte(text, '+') > 0 {
		d.marks = slices.DeleteFunc(d.marks, func(mark string) bool { return strings.Contains(text, mark) })
	}
}

// column makes a column. It returns nil if there are maxColumns already.
func (d *Items) column(parent *column, key string) *column {
	if len(d.columns) == maxColumns {
		return nil
	}
	d.unmark(key)
	c := &column{key: strings.Clone(key), parent: parent, excess: max(0, len(key)-usualKey), stats: stats{last: -1, equal: true}}
	if parent != nil {
		c.level, c.listed, c.excess = parent.level+1, parent.listed, c.excess+parent.excess
	}
	d.columns = append(d.columns, c)
	return c
}

// field returns the column for a member of the objects in c, or nil if there are too many columns or levels.
func (d *Items) field(c *column, key string) *column {
	f := c.fields[key]
	if f == nil && c.level < maxLevels {
		if f = d.column(c, key); f != nil {
			if c.fields == nil {
				c.fields = map[string]*column{}
			}
			c.fields[f.key] = f
			c.inner = append(c.inner, f)
		}
	}
	return f
}

// element returns the column for the elements of the arrays in c, or nil if there are too many columns or levels.
func (d *Items) element(c *column) *column {
	if c.elements == nil && c.level < maxLevels {
		if c.elements = d.column(c, ""); c.elements != nil {
			c.elements.listed = true
		}
	}
	return c.elements
}

// add adds the value of a node to its column. The parameter maxIndex is the largest index of the array elements that contain
// the node; it is 0 outside of arrays.
func (d *Items) add(c *column, at int32, maxIndex int) {
	n := &d.doc.Nodes[at]
	switch {
	case c == nil:
		d.beyond = true
	case n.Count == 0:
		d.addValue(c, at, maxIndex)
	case n.Kind == wire.Object:
		for kid := at + 1; kid < n.Next; kid = d.doc.Nodes[kid].Next {
			d.add(d.field(c, d.doc.Str(d.doc.Nodes[kid].Key)), kid, maxIndex)
		}
	default:
		i := 0
		for kid := at + 1; kid < n.Next; kid = d.doc.Nodes[kid].Next {
			d.add(d.element(c), kid, max(maxIndex, i))
			i++
		}
	}
}

func (d *Items) addValue(c *column, at int32, most int) {
	text := d.scalar(at)
	for i, count := range counts {
		if most < count {
			c.values[i]++
			break
		}
	}
	for i, length := range lengths {
		c.sizes[i] += min(len(text), length+markBytes)
	}
	if c.items == 0 {
		c.first = at
	} else if c.equal {
		c.equal = d.doc.Nodes[at].Kind == d.doc.Nodes[c.first].Kind && text == d.scalar(c.first)
	}
	if item := len(d.at); c.last != item {
		c.items, c.last = c.items+1, item
	} else {
		c.twice = true
	}
	hash := maphash.String(d.seed, text)
	c.sum = c.sum*31 + hash
	if c.level <= 1 {
		if c.distinct == nil {
			c.distinct = map[uint64]struct{}{}
		}
		c.distinct[hash] = struct{}{}
	}
	if d.doc.Nodes[at].Kind == wire.String {
		d.addString(c, text)
	}
	if c.sampled < maxSamples {
		c.sampled++
		c.sample.WriteString(text[:min(len(text), sampleSize)] + " ")
	}
}

func (d *Items) addString(c *column, text string) {
	if strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://") {
		c.urls++
	} else if strings.IndexByte(text, ' ') > 0 {
		c.prose++
	}
	d.unmark(text)
}

// scalar returns the text of a scalar or of an empty container.
func (d *Items) scalar(at int32) string {
	n := &d.doc.Nodes[at]
	switch n.Kind {
	case wire.Number, wire.String:
		return d.doc.Str(n.Text)
	}
	return [...]string{wire.Null: "null", wire.True: "true", wire.False: "false", wire.Array: "[]", wire.Object: "{}"}[n.Kind]
}

// valued reports whether a column has values itself.
func (c *column) valued() bool { return c.items > 0 }
