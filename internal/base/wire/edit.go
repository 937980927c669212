package wire

import (
	"bytes"
	"encoding/json"
)

// Edit is a JSON object with f's value for the member key. The rest stays byte for byte;
// if there is no such member, or f returns what it got, all of it. Of members with the
// same key it edits the first.
func Edit(object json.RawMessage, key string, f func(value json.RawMessage) json.RawMessage) json.RawMessage {
	edited := object
	_ = FieldsAt(object, func(name string, start, end int) bool {
		if name != key {
			return true
		}
		value := object[start:end:end]
		if next := f(value); !bytes.Equal(next, value) {
			edited = bytes.Join([][]byte{object[:start], next, object[end:]}, nil)
		}
		return false
	})
	return edited
}

// EditEach is [Edit] for the elements of an array.
func EditEach(array json.RawMessage, f func(element json.RawMessage) json.RawMessage) json.RawMessage {
	changed := false
	err := Elements(array, func(element []byte) bool {
		changed = !bytes.Equal(f(element), element)
		return !changed
	})
	if err != nil || !changed {
		return array // which may be large, and is not copied
	}
	out := []byte{'['}
	_ = Elements(array, func(element []byte) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, f(element)...)
		return true
	})
	return append(out, ']')
}

// EditText is an f for [Edit] that replaces a string.
func EditText(f func(text string) string) func(json.RawMessage) json.RawMessage {
	return func(value json.RawMessage) json.RawMessage {
		text, ok := Text(value)
		if !ok {
			return value
		}
		if next := f(text); next != text {
			return AppendQuoted(nil, next)
		}
		return value
	}
}

// Member is the value of a member of a JSON object, nil if there is none. Of members
// with the same key it is the first, which [Edit] would edit.
func Member(object json.RawMessage, key string) (value json.RawMessage) {
	_ = Fields(object, func(name string, found []byte) bool {
		if name == key {
			value = found
		}
		return name != key
	})
	return value
}

// MemberText is a string member of a JSON object, empty if there is none.
func MemberText(object json.RawMessage, key string) string {
	text, _ := Text(Member(object, key))
	return text
}

// Filter is a JSON object with those members of another that keep reports; {} if that is
// nil.
func Filter(object json.RawMessage, keep func(name string, value []byte) bool) json.RawMessage {
	out := []byte{'{'}
	_ = Members(object, func(name string, written, value []byte) bool {
		if keep(name, value) {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(append(out, written...), ':'), value...)
		}
		return true
	})
	return append(out, '}')
}

// WithMember is a JSON object, which may be nil, with one more member.
func WithMember(object json.RawMessage, key string, value []byte) json.RawMessage {
	out := make([]byte, 0, len(object)+len(key)+len(value)+5)
	if before := bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(object), []byte{'}'})); len(before) > 1 {
		out = append(append(out, before...), ',')
	} else {
		out = append(out, '{')
	}
	out = append(append(AppendQuoted(out, key), ':'), value...)
	return append(out, '}')
}

// Merge has the members of a JSON object, then those of another that it does not have.
// Both may be nil.
func Merge(first, second json.RawMessage) json.RawMessage {
	switch {
	case second == nil:
		return first
	case first == nil:
		return second
	}
	has := make(map[string]bool)
	out := Filter(first, func(name string, _ []byte) bool {
		has[name] = true
		return true
	})
	rest := Filter(second, func(name string, _ []byte) bool { return !has[name] })
	switch {
	case len(out) == len("{}"):
		return rest
	case len(rest) == len("{}"):
		return out
	}
	return append(append(out[:len(out)-1], ','), rest[1:]...)
}
