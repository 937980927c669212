package schemats

import (
	"errors"
	"strconv"
	"strings"

	"mcpx/internal/base/wire"
)

// maxJSONDepth and maxJSONBytes bound a schema document. In real schemas, JSON is nested fewer than 20 levels deep.
const (
	maxJSONDepth = 300
	maxJSONBytes = 16 << 20
)

// value is one JSON value. The order of keys and the digits of numbers are kept.
type value struct {
	kind wire.Kind
	// text is the decoded string, or a number, boolean or null as it is in the JSON.
	text    string
	items   []*value
	members []member
	// index finds members by key; it is nil in small objects.
	index map[string]int
}

type member struct {
	key string
	val *value
}

// get returns the member with this key, or nil if there is none or v is not an object.
func (v *value) get(key string) *value {
	if !v.isObject() {
		return nil
	}
	if i := v.find(key); i >= 0 {
		return v.members[i].val
	}
	return nil
}

// find returns the index of the member with this key, or -1 if there is none.
func (v *value) find(key string) int {
	if v.index != nil {
		if i, ok := v.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range v.members {
		if v.members[i].key == key {
			return i
		}
	}
	return -1
}

// str returns the string in the member key, or "" if there is no such member or it is not a string.
func (v *value) str(key string) string { return v.literal(key, wire.String) }

// number returns the number in the member key as it is in the JSON, or "" if there is no such member or it is not a number.
func (v *value) number(key string) string { return v.literal(key, wire.Number) }

func (v *value) literal(key string, kind wire.Kind) string {
	if m := v.get(key); m.is(kind) {
		return m.text
	}
	return ""
}

func (v *value) is(kind wire.Kind) bool { return v != nil && v.kind == kind }
func (v *value) isTrue() bool           { return v.is(wire.True) }
func (v *value) isFalse() bool          { return v.is(wire.False) }
func (v *value) isObject() bool         { return v.is(wire.Object) }
func (v *value) isArray() bool          { return v.is(wire.Array) }

// count returns the value of a member such as minItems, or -1 if it is missing or is not a small non-negative integer.
func (v *value) count(key string) int {
	f, err := strconv.ParseFloat(v.number(key), 64)
	if err != nil || f < 0 || f > 1<<40 || f != float64(int64(f)) {
		return -1
	}
	return int(f)
}

// readJSON reads a schema document. The error is a short reason, which is written in place of the schema.
func readJSON(src []byte) (*value, error) {
	if len(src) > maxJSONBytes {
		return nil, errors.New("schema too large")
	}
	d, ok := wire.Read(string(src))
	if !ok {
		return nil, errors.New("invalid JSON")
	}
	if d.Depth > maxJSONDepth {
		return nil, errors.New("nested too deeply")
	}
	t := tree{d: d, values: make([]value, len(d.Nodes))}
	return t.value(0), nil
}

// tree converts the nodes of a document to values.
type tree struct {
	d      *wire.Document
	values []value
}

func (t *tree) value(i int32) *value {
	n, v := &t.d.Nodes[i], &t.values[i]
	v.kind = n.Kind
	switch n.Kind {
	case wire.Null:
		v.text = "null"
	case wire.True:
		v.text = "true"
	case wire.False:
		v.text = "false"
	case wire.Array:
		v.items = make([]*value, 0, n.Count)
	case wire.Object:
		v.members = make([]member, 0, n.Count)
	default:
		v.text = t.str(n.Text)
	}
	for c := i + 1; c < n.Next; c = t.d.Nodes[c].Next {
		child := t.value(c)
		if n.Kind == wire.Object {
			v.put(t.str(t.d.Nodes[c].Key), child)
		} else {
			v.items = append(v.items, child)
		}
	}
	return v
}

// str returns the string at s as valid UTF-8.
func (t *tree) str(s wire.Span) string {
	text := t.d.Str(s)
	if t.d.UTF8 && !t.d.Lone {
		return text
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// put adds a member. If the key is already there, its value is replaced, as common JSON parsers do.
func (v *value) put(key string, val *value) {
	if i := v.find(key); i >= 0 {
		v.members[i].val = val
		return
	}
	v.members = append(v.members, member{key, val})
	if v.index != nil {
		v.index[key] = len(v.members) - 1
	} else if len(v.members) == 16 {
		v.index = make(map[string]int, 32)
		for i := range v.members {
			v.index[v.members[i].key] = i
		}
	}
}

// appendJSON appends the minified JSON of v, for a comment. Invisible characters are escaped, and the JSON is cut soon after b
// has max bytes.
func appendJSON(b []byte, v *value, max int) []byte {
	if len(b) > max {
		return b
	}
	switch v.kind {
	case wire.String:
		return appendQuoted(b, v.text)
	case wire.Array:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item, max)
		}
		return append(b, ']')
	case wire.Object:
		b = append(b, '{')
		for i, m := range v.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendQuoted(b, m.key), ':')
			b = appendJSON(b, m.val, max)
		}
		return append(b, '}')
	}
	return append(b, v.text...)
}
