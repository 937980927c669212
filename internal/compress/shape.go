package compress

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"mcpx/internal/base/wire"
	"mcpx/internal/tokens"
)

// These are the limits of [Shape]. With them, the shape of a usual document names all that matters, and no document takes long.
const (
	shapeDepth = 8
	shapeItems = 20  // so many items at the beginning of each array are read; of the later items, only a sample
	shapeKeys  = 200 // how many keys are recorded at most for each position in the document
	shapeKey   = 60  // how many bytes of a key are shown at most
	// An object whose values all have the same form is shown as a map if it has more than mapKeys keys: with one key as an
	// example, and one shape for all values.
	mapKeys = 20
)

// Shape describes the keys and types in a JSON value, for a model that has seen only a part of it:
//
//	{total: number, items: [20 of {id: number, name?: string, owner: {login: string}|null}]}
//
// It reads the first items of an array and a sample of the others. A key with a question mark is missing in some of the items. The
// text has at most maxTokens tokens according to [tokens.Ceiling]. If it would have more, deep levels and the last keys of objects
// are replaced by the number of the keys that are left out. For a text that is not JSON, Shape returns "not JSON".
func Shape(raw []byte, maxTokens int) string {
	if !wire.Valid(raw) {
		return "not JSON"
	}
	return (&shaper{}).shape(bytes.TrimSpace(raw), maxTokens)
}

// ShapeOf returns the [Shape] of a value that contains a long array or object (the container). The parameter parts has the JSON of
// only some elements or members of the container; a member includes its key. The parameter count is the number of all elements or
// members. The parameter head is the JSON of the value up to and including the opening bracket of the container, and tail is the
// JSON after the last element or member.
func ShapeOf(head string, parts []json.RawMessage, tail string, count, maxTokens int) string {
	raw := append(make([]byte, 0, len(head)), head...)
	at := len(bytes.TrimRight(raw, " \t\r\n")) - 1 // index of the opening bracket of the container
	for i, part := range parts {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, part...)
	}
	raw = append(raw, tail...)
	return (&shaper{opening: &raw[at], missing: count - len(parts)}).shape(raw, maxTokens)
}

// shaper makes the shape of a value. The JSON of the value may lack elements or members of one container. The field opening
// points to the first byte of that container, and missing is the number of elements or members that the container lacks.
type shaper struct {
	opening *byte
	missing int
}

// leftOf returns how many elements or members of a container are missing in the JSON.
func (m *shaper) leftOf(container []byte) int {
	if &container[0] == m.opening {
		return m.missing
	}
	return 0
}

func (m *shaper) shape(raw []byte, maxTokens int) string {
	root := new(shape)
	m.add(root, raw, shapeDepth)
	for _, keys := range []int{shapeKeys, 50, 20, 10, 5, 2} {
		for depth := shapeDepth; depth > 0; depth-- {
			if keys > 20 && depth < 3 {
				break // fewer keys on more levels are better than more keys on fewer levels
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

// shape summarizes all values at the same position in a document.
type shape struct {
	kinds              [wire.Object + 1]bool
	keys               []string // at most shapeKeys
	fields             map[string]*field
	more               int // largest number of keys of one object that are not in keys
	objects            int
	items              *shape
	minItems, maxItems int // smallest and largest number of items in an array
	haveArrays         bool
	value              *shape // for a map, the shape of its values: see [shape.asMap]
	notMap             bool
}

type field struct {
	shape
	seen int // number of objects that have this key
}

// add adds a value to a shape. depth is how many levels of the keys and items inside the value are added too.
func (m *shaper) add(s *shape, value []byte, depth int) {
	switch c := value[0]; c {
	case '{':
		s.kinds[wire.Object] = true
		m.addMembers(s, value, depth)
	case '[':
		s.kinds[wire.Array] = true
		m.addItems(s, value, depth)
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

func (m *shaper) addMembers(s *shape, object []byte, depth int) {
	s.objects++
	more := m.leftOf(object)
	_ = wire.Fields(object, func(key string, value []byte) bool { // cannot fail, since the JSON is valid
		f := s.field(key)
		if f == nil {
			more++
			return true
		}
		f.seen++
		if depth > 0 {
			m.add(&f.shape, value, depth-1)
		}
		return true
	})
	s.more = max(s.more, more)
}

func (m *shaper) addItems(s *shape, array []byte, depth int) {
	if s.items == nil && depth > 0 {
		s.items = new(shape)
	}
	left, count := m.leftOf(array), 0
	_ = wire.Elements(array, func(item []byte) bool { // cannot fail, since the JSON is valid
		if depth > 0 && (left > 0 || sampled(count)) {
			m.add(s.items, item, depth-1)
		}
		count++
		return true
	})
	count += left
	s.addCounts(count, count)
}

// addCounts records some arrays. The shortest of them has minimum items, the longest maximum items.
func (s *shape) addCounts(minimum, maximum int) {
	if !s.haveArrays {
		s.haveArrays, s.minItems = true, minimum
	}
	s.minItems, s.maxItems = min(s.minItems, minimum), max(s.maxItems, maximum)
}

// field returns the field for a key, which is created if there is none. It returns nil if there are already shapeKeys keys.
func (s *shape) field(key string) *field {
	f := s.fields[key]
	if f == nil && len(s.keys) < shapeKeys {
		if s.fields == nil {
			s.fields = map[string]*field{}
		}
		f, key = new(field), strings.Clone(key) // clone, since key may be a slice of a large text
		s.fields[key] = f
		s.keys = append(s.keys, key)
	}
	return f
}

// asMap returns the shape of all values if the object is a map, for example from IDs to objects. It returns nil if the object has
// different members instead.
func (s *shape) asMap() *shape {
	if s.value != nil || s.notMap || len(s.keys)+s.more <= mapKeys {
		return s.value
	}
	value, names, seen := new(shape), 0, 0
	for _, key := range s.keys {
		f := s.fields[key]
		value.merge(&f.shape)
		names += len(f.keys)
		seen += f.seen
	}
	kinds := 0
	for _, has := range value.kinds {
		if has {
			kinds++
		}
	}
	open := s.more > 0 || 4*seen < len(s.keys)*s.objects // each object has only a few of the keys
	like := kinds == 1 && (value.kinds[wire.Array] || value.kinds[wire.Object] || open)
	if like && len(value.keys)*len(s.keys) <= 4*names {
		s.value = value
	}
	s.notMap = s.value == nil
	return s.value
}

// merge adds to s all values that were added to o.
func (s *shape) merge(o *shape) {
	for k, has := range o.kinds {
		s.kinds[k] = s.kinds[k] || has
	}
	s.objects += o.objects
	s.more = max(s.more, o.more)
	for _, key := range o.keys {
		if f := s.field(key); f != nil {
			f.seen += o.fields[key].seen
			f.merge(&o.fields[key].shape)
		}
	}
	if o.items != nil {
		if s.items == nil {
			s.items = new(shape)
		}
		s.items.merge(o.items)
	}
	if o.haveArrays {
		s.addCounts(o.minItems, o.maxItems)
	}
}

// Keys returns the keys of all objects in a JSON value, each key once. It reads as much of the value as [Shape] does. If raw is not
// JSON, it returns nil.
func Keys(raw []byte) (keys []string) {
	if !wire.Valid(raw) {
		return nil
	}
	root := new(shape)
	(&shaper{}).add(root, bytes.TrimSpace(raw), shapeDepth)
	seen := map[string]bool{}
	var collect func(s *shape)
	collect = func(s *shape) {
		for _, key := range s.keys {
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
			collect(&s.fields[key].shape)
		}
		if s.items != nil {
			collect(s.items)
		}
	}
	collect(root)
	return keys
}

// sampled reports whether the item with index i is read: the first items, and then those whose index is a power of two, which
// are about fifteen in an array of a million items.
func sampled(i int) bool { return i < shapeItems || i&(i-1) == 0 }

var kindNames = [...]string{
	wire.Null: "null", wire.True: "boolean", wire.Number: "number", wire.String: "string",
}

// write writes the shape, at most depth levels deep and with at most keys keys per object.
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
	value := s.asMap()
	out.WriteByte('{')
	defer out.WriteByte('}')
	switch {
	case all > 0 && depth == 0 && value == nil:
		fmt.Fprintf(out, "… keys: %d", all)
		return
	case value != nil:
		out.WriteByte('[')
		if s.objects == 1 {
			out.WriteString(strconv.Itoa(all) + " ")
		}
		out.WriteString("keys such as ")
		example := s.keys[0]
		if example == "" {
			example = s.keys[1] // exists, since there are more than mapKeys keys
		}
		writeQuoted(out, example)
		out.WriteByte(']')
		if depth > 0 {
			out.WriteString(": ")
			value.write(out, depth-1, keys)
		}
		return
	}
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
}

func (s *shape) writeArray(out *strings.Builder, depth, keys int) {
	if s.maxItems == 0 {
		out.WriteString("[]")
		return
	}
	out.WriteByte('[')
	if s.minItems < s.maxItems {
		out.WriteString(strconv.Itoa(s.minItems) + "-")
	}
	out.WriteString(strconv.Itoa(s.maxItems))
	if depth == 0 || s.items == nil {
		out.WriteString(" items]")
		return
	}
	out.WriteString(" of ")
	s.items.write(out, depth-1, keys)
	out.WriteByte(']')
}

// writeKey writes a key. It quotes a key that jq does not accept after a dot, and quotes and shortens a long one.
func writeKey(out *strings.Builder, key string) {
	if named(key) && len(key) <= shapeKey {
		out.WriteString(key)
		return
	}
	writeQuoted(out, key)
}

func writeQuoted(out *strings.Builder, key string) {
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
