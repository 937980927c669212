package wire

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Edit replaces the value of one member of a JSON object by f's result. All other bytes are kept. If the member occurs
// several times, Edit changes the first one. If nothing changes, Edit returns object itself, not a copy.
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

// EditEach replaces each element of an array by f's result. It may call f twice for an element. If nothing changes, or array is
// not a valid array, it returns array itself.
func EditEach(array json.RawMessage, f func(element json.RawMessage) json.RawMessage) json.RawMessage {
	changed := false
	err := Elements(array, func(element []byte) bool {
		changed = !bytes.Equal(f(element), element)
		return !changed
	})
	if err != nil || !changed {
		return array // no copy, as it may be large
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

// EditText returns a function for [Edit] that replaces a string by f's result, and leaves other values unchanged.
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

// Member returns the value of a member of a JSON object, or nil if there is no such member. Of duplicate members it
// returns the first.
func Member(object json.RawMessage, key string) (value json.RawMessage) {
	_ = Fields(object, func(name string, found []byte) bool {
		if name == key {
			value = found
		}
		return name != key
	})
	return value
}

// MemberText returns the value of a string member of a JSON object. It is empty if there is no such member, or if the
// value is not a string.
func MemberText(object json.RawMessage, key string) string {
	text, _ := Text(Member(object, key))
	return text
}

// Filter returns a JSON object with the members for which keep returns true. A nil object is treated as {}.
func Filter(object json.RawMessage, keep func(name string, value []byte) bool) json.RawMessage {
	out := []byte{'{'}
	_ = Members(object, func(name string, written, value []byte) bool {
		if keep(name, value) {
			out = AppendMember(out, written, value)
		}
		return true
	})
	return append(out, '}')
}

// AppendMember appends a member to an unfinished JSON object, which begins with {. If out is empty, AppendMember begins an object. The
// key must already be written as JSON.
func AppendMember(out, key, value []byte) []byte {
	switch len(out) {
	case 0:
		out = append(out, '{')
	case 1:
	default:
		out = append(out, ',')
	}
	return append(append(append(out, key...), ':'), value...)
}

// Without returns a JSON object without the given members. A nil object is treated as {}.
func Without(object json.RawMessage, keys ...string) json.RawMessage {
	return Filter(object, func(name string, _ []byte) bool { return !slices.Contains(keys, name) })
}

// Set returns a JSON object in which a member has the given value. The member keeps its position; if there is none, Set adds it
// at the end. A nil object is treated as {}.
func Set(object json.RawMessage, key string, value []byte) json.RawMessage {
	if Member(object, key) == nil {
		return WithMember(object, key, value)
	}
	return Edit(object, key, func(json.RawMessage) json.RawMessage { return value })
}

// WithMember returns a copy of object with one more member at its end. A nil object is treated as {}.
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

// Merge returns an object with all members of base, and then those members of extra whose names base does not have. Either
// object may be nil.
func Merge(base, extra json.RawMessage) json.RawMessage {
	switch {
	case extra == nil:
		return base
	case base == nil:
		return extra
	}
	has := make(map[string]bool)
	out := Filter(base, func(name string, _ []byte) bool {
		has[name] = true
		return true
	})
	rest := Filter(extra, func(name string, _ []byte) bool { return !has[name] })
	switch {
	case len(out) == len("{}"):
		return rest
	case len(rest) == len("{}"):
		return out
	}
	return append(append(out[:len(out)-1], ','), rest[1:]...)
}
