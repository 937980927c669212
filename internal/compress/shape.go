package compress

import (
	"fmt"
	"strconv"
	"strings"

	"mcpx/internal/tokens"
	"mcpx/internal/wire"
)

// Limits of [Shape]: enough to name the parts of a document, few enough to be quick on any.
const (
	shapeDepth = 8
	shapeItems = 5  // of each array
	shapeKey   = 60 // bytes of a key
)

// Shape describes a JSON value by its keys and types, for an agent whose jq filter did not fit:
//
//	{total: number, items: [20 of {id: number, name?: string, owner: {login: string}|null}]}
//
// Only the first items of an array count. A key with a question mark is missing in some of them. An
// ellipsis replaces deep levels and last keys until the text has at most maxTokens by [tokens.Ceiling].
func Shape(raw []byte, maxTokens int) string {
	doc, ok := wire.Read(string(raw))
	if !ok {
		return "not JSON"
	}
	root := new(shape)
	root.add(doc, 0, shapeDepth)
	for _, keys := range []int{200, 50, 20, 10, 5, 2} {
		for depth := shapeDepth; depth > 0; depth-- {
			if keys > 20 && depth < 3 {
				break // fewer keys on more levels are better
			}
			var out strings.Builder
			root.write(&out, depth, keys)
			if tokens.Ceiling(out.String()) <= maxTokens {
				return out.String()
			}
		}
	}
	var out strings.Builder
	root.write(&out, 0, 0)
	return out.String()
}

// shape sums up the values at one place in a document.
type shape struct {
	kinds      [wire.Object + 1]bool
	keys       []string
	fields     map[string]*field
	objects    int
	items      *shape
	few, many  int // least and most items of the arrays
	haveArrays bool
}

type field struct {
	shape
	seen int // number of objects that have it
}

// add adds node i to the shape.
func (s *shape) add(d *wire.Document, i int32, depth int) {
	n := &d.Nodes[i]
	s.kinds[n.Kind] = true
	switch n.Kind {
	case wire.Array:
		s.addItems(d, i, depth)
	case wire.Object:
		s.objects++
		if depth == 0 {
			return
		}
		if s.fields == nil {
			s.fields = map[string]*field{}
		}
		for c := i + 1; c < n.Next; c = d.Nodes[c].Next {
			key := d.Str(d.Nodes[c].Key)
			f := s.fields[key]
			if f == nil {
				f = new(field)
				s.fields[key] = f
				s.keys = append(s.keys, key)
			}
			f.seen++
			f.add(d, c, depth-1)
		}
	}
}

func (s *shape) addItems(d *wire.Document, i int32, depth int) {
	n := &d.Nodes[i]
	count := int(n.Count)
	if !s.haveArrays {
		s.few = count
	}
	s.haveArrays = true
	s.few, s.many = min(s.few, count), max(s.many, count)
	if depth == 0 {
		return
	}
	if s.items == nil {
		s.items = new(shape)
	}
	c := i + 1
	for range min(count, shapeItems) {
		s.items.add(d, c, depth-1)
		c = d.Nodes[c].Next
	}
}

var kindNames = [...]string{
	wire.Null: "null", wire.False: "boolean", wire.True: "boolean", wire.Number: "number", wire.String: "string",
}

// write writes the shape, down to depth levels and with at most keys keys of an object.
func (s *shape) write(out *strings.Builder, depth, keys int) {
	bar := ""
	for _, k := range [...]wire.Kind{wire.Object, wire.Array, wire.String, wire.Number, wire.True, wire.False, wire.Null} {
		if !s.kinds[k] || k == wire.False && s.kinds[wire.True] {
			continue
		}
		out.WriteString(bar)
		bar = "|"
		switch k {
		case wire.Object:
			s.writeObject(out, depth, keys)
		case wire.Array:
			s.writeArray(out, depth, keys)
		default:
			out.WriteString(kindNames[k])
		}
	}
}

func (s *shape) writeObject(out *strings.Builder, depth, keys int) {
	if len(s.keys) > 0 && depth == 0 {
		fmt.Fprintf(out, "{… keys: %d}", len(s.keys))
		return
	}
	out.WriteByte('{')
	for i, key := range s.keys {
		if i > 0 {
			out.WriteString(", ")
		}
		if i == keys {
			fmt.Fprintf(out, "… keys: %d more", len(s.keys)-keys)
			break
		}
		f := s.fields[key]
		writeKey(out, key)
		if f.seen < s.objects {
			out.WriteByte('?')
		}
		out.WriteString(": ")
		f.write(out, depth-1, keys)
	}
	out.WriteByte('}')
}

func (s *shape) writeArray(out *strings.Builder, depth, keys int) {
	if s.many == 0 {
		out.WriteString("[]")
		return
	}
	out.WriteByte('[')
	if s.few < s.many {
		out.WriteString(strconv.Itoa(s.few) + "-")
	}
	out.WriteString(strconv.Itoa(s.many))
	if depth == 0 || s.items == nil {
		out.WriteString(" items]")
		return
	}
	out.WriteString(" of ")
	s.items.write(out, depth-1, keys)
	out.WriteByte(']')
}

// writeKey quotes a key that jq does not accept after a dot.
func writeKey(out *strings.Builder, key string) {
	if unquotedKey(key) && !strings.Contains(key, ".") && len(key) <= shapeKey {
		out.WriteString(key)
		return
	}
	short := strings.ToValidUTF8(key, "\uFFFD")
	if len(short) > shapeKey {
		short = strings.ToValidUTF8(short[:shapeKey], "") + "…"
	}
	e := encoder{}
	e.quote(short)
	out.Write(e.out)
}
