package compress

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"mcpx/internal/tokens"
	"mcpx/internal/wire"
)

// Limits of [Shape]: enough to name the parts of a document, few enough to be quick on any.
const (
	shapeDepth = 8
	shapeItems = 5   // of each array, beside the samples of sampled
	shapeKeys  = 200 // of each object
	shapeKey   = 60  // bytes of a key
)

// Shape describes a JSON value by its keys and types, for an agent that has not seen all of it:
//
//	{total: number, items: [20 of {id: number, name?: string, owner: {login: string}|null}]}
//
// The first items of an array count, and fewer and fewer of the others. A key with a question mark is
// missing in some of them. An ellipsis replaces deep levels and last keys until the text has at most
// maxTokens by [tokens.Ceiling].
func Shape(raw []byte, maxTokens int) string {
	if !wire.Valid(raw) {
		return "not JSON"
	}
	root := new(shape)
	root.add(bytes.TrimSpace(raw), shapeDepth)
	for _, keys := range []int{shapeKeys, 50, 20, 10, 5, 2} {
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
	keys       []string // at most shapeKeys
	fields     map[string]*field
	more       int // most keys of one object that are not in keys
	objects    int
	items      *shape
	few, many  int // least and most items of the arrays
	haveArrays bool
}

type field struct {
	shape
	seen int // number of objects that have it
}

// add adds a value to the shape.
func (s *shape) add(value []byte, depth int) {
	switch c := value[0]; c {
	case '{':
		s.kinds[wire.Object] = true
		s.addMembers(value, depth)
	case '[':
		s.kinds[wire.Array] = true
		s.addItems(value, depth)
	case '"':
		s.kinds[wire.String] = true
	case 't', 'f':
		s.kinds[wire.True] = true
	case 'n':
		s.kinds[wire.Null] = true
	default:
		s.kinds[wire.Number] = true
	}
}

func (s *shape) addMembers(object []byte, depth int) {
	s.objects++
	more := 0
	_ = wire.Fields(object, func(key string, value []byte) bool { // Shape has checked it
		f := s.fields[key]
		switch {
		case f == nil && len(s.keys) == shapeKeys:
			more++
			return true
		case f == nil:
			if s.fields == nil {
				s.fields = map[string]*field{}
			}
			f, key = new(field), strings.Clone(key)
			s.fields[key] = f
			s.keys = append(s.keys, key)
		}
		f.seen++
		if depth > 0 {
			f.add(value, depth-1)
		}
		return true
	})
	s.more = max(s.more, more)
}

func (s *shape) addItems(array []byte, depth int) {
	if s.items == nil && depth > 0 {
		s.items = new(shape)
	}
	count := 0
	_ = wire.Elements(array, func(item []byte) bool { // Shape has checked it
		if depth > 0 && sampled(count) {
			s.items.add(item, depth-1)
		}
		count++
		return true
	})
	if !s.haveArrays {
		s.few = count
	}
	s.haveArrays = true
	s.few, s.many = min(s.few, count), max(s.many, count)
}

// sampled reports whether the item at an index counts: the first ones, and those at powers of two. An
// array of a million items has about twenty samples.
func sampled(i int) bool { return i < shapeItems || i&(i-1) == 0 }

var kindNames = [...]string{
	wire.Null: "null", wire.True: "boolean", wire.Number: "number", wire.String: "string",
}

// write writes the shape, down to depth levels and with at most keys keys of an object.
func (s *shape) write(out *strings.Builder, depth, keys int) {
	bar := ""
	for _, k := range [...]wire.Kind{wire.Object, wire.Array, wire.String, wire.Number, wire.True, wire.Null} {
		if !s.kinds[k] {
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
	all := len(s.keys) + s.more
	if all > 0 && depth == 0 {
		fmt.Fprintf(out, "{… keys: %d}", all)
		return
	}
	out.WriteByte('{')
	for i, key := range s.keys {
		if i > 0 {
			out.WriteString(", ")
		}
		if i == keys {
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
	if all > keys {
		fmt.Fprintf(out, "… keys: %d more", all-keys)
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
	if named(key) && len(key) <= shapeKey {
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

// named reports whether jq accepts a key after a dot, without quotes.
func named(key string) bool { return unquotedKey(key) && !strings.Contains(key, ".") }

// Step is the step from an object to one of its members, as jq writes it: .key or ["a key"].
func Step(key string) string {
	if named(key) {
		return "." + key
	}
	return "[" + string(wire.AppendQuoted(nil, key)) + "]"
}
