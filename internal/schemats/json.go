package schemats

import (
	"errors"
	"strconv"
	"strings"

	"mcpx/internal/base/wire"
)

// Limits of what is read. Real schemas nest fewer than 20 levels of JSON.
const (
	maxJSONDepth = 300
	maxJSONBytes = 16 << 20
)

type jsonKind uint8

const (
	jNull jsonKind = iota
	jBool
	jNumber
	jString
	jArray
	jObject
)

// value is one JSON value, with keys in their order and numbers as written.
type value struct {
	kind jsonKind
	// text is the decoded string, or the literal of a number, boolean or null.
	text    string
	items   []*value
	members []member
	// index finds members of large objects by key; nil for small ones.
	index map[string]int
}

type member struct {
	key string
	val *value
}

// get finds a member; nil for a missing key or a value that is no object.
func (v *value) get(key string) *value {
	if v == nil || v.kind != jObject {
		return nil
	}
	if i := v.find(key); i >= 0 {
		return v.members[i].val
	}
	return nil
}

// find is the position of a key among the members, -1 where it is missing.
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

func (v *value) str(key string) string {
	if m := v.get(key); m != nil && m.kind == jString {
		return m.text
	}
	return ""
}

func (v *value) isTrue() bool  { return v != nil && v.kind == jBool && v.text == "true" }
func (v *value) isFalse() bool { return v != nil && v.kind == jBool && v.text == "false" }
func (v *value) isObject() bool {
	return v != nil && v.kind == jObject
}
func (v *value) isArray() bool { return v != nil && v.kind == jArray }

// count reads a small non-negative integer such as minItems, -1 if the member is missing or anything else.
func (v *value) count(key string) int {
	m := v.get(key)
	if m == nil || m.kind != jNumber {
		return -1
	}
	f, err := strconv.ParseFloat(m.text, 64)
	if err != nil || f < 0 || f > 1<<40 || f != float64(int64(f)) {
		return -1
	}
	return int(f)
}

// readJSON reads one document.
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

// tree makes values of the nodes of a document.
type tree struct {
	d      *wire.Document
	values []value
}

func (t *tree) value(i int32) *value {
	n, v := &t.d.Nodes[i], &t.values[i]
	switch n.Kind {
	case wire.Null:
		v.text = "null"
	case wire.True, wire.False:
		v.kind, v.text = jBool, strconv.FormatBool(n.Kind == wire.True)
	case wire.Number:
		v.kind, v.text = jNumber, t.d.Str(n.Text)
	case wire.String:
		v.kind, v.text = jString, t.str(n.Text)
	case wire.Array, wire.Object:
		t.children(v, i)
	}
	return v
}

func (t *tree) children(v *value, i int32) {
	n := &t.d.Nodes[i]
	if v.kind = jArray; n.Kind == wire.Object {
		v.kind, v.members = jObject, make([]member, 0, n.Count)
	} else {
		v.items = make([]*value, 0, n.Count)
	}
	for c := i + 1; c < n.Next; c = t.d.Nodes[c].Next {
		child := t.value(c)
		if v.kind == jObject {
			v.put(t.str(t.d.Nodes[c].Key), child)
		} else {
			v.items = append(v.items, child)
		}
	}
}

// str is the text at s as valid UTF-8.
func (t *tree) str(s wire.Span) string {
	text := t.d.Str(s)
	if t.d.UTF8 && !t.d.Lone {
		return text
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// put adds a member. Of two with one key the last value counts, as in the JSON
// parsers of the upstream's own clients.
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

// appendJSON writes v minified, for a comment: non-printing characters escaped,
// and not much more than max bytes of it.
func appendJSON(b []byte, v *value, max int) []byte {
	if len(b) > max {
		return b
	}
	switch v.kind {
	case jString:
		return appendQuoted(b, v.text)
	case jArray:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item, max)
		}
		return append(b, ']')
	case jObject:
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
