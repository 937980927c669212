package arguments

import (
	"encoding/json"
	"strings"

	"mcpx/internal/base/wire"
)

// wrapper recognizes an object whose only member contains the actual arguments: some models send {"args": {…}} or {"arguments":
// {…}}, as if the tool had one parameter. It returns the name and the value of that member. The schema must not describe this
// name, but must describe a member of the value. For any other object, inner is nil. open reports whether the schema has a
// subschema for names that it does not describe; then the object may fit as it was sent.
func (s *schema) wrapper(object json.RawMessage) (name string, inner json.RawMessage, open bool) {
	members := 0
	if s == nil || wire.Fields(object, func(key string, value []byte) bool {
		members++
		name, inner = strings.Clone(key), value
		return members == 1
	}) != nil || members != 1 || name != "args" && name != "arguments" {
		return "", nil, false
	}
	inner, err := unpack(inner)
	if err != nil {
		return "", nil, false
	}
	d := described{names: make(map[string]bool), seen: make(map[*schema]bool)}
	if d.add(s); d.names[name] {
		return "", nil, false
	}
	known := false
	_ = wire.Fields(inner, func(key string, _ []byte) bool { // invalid JSON is found later, when the value is read
		known = d.names[key]
		return !known
	})
	if !known {
		return "", nil, false
	}
	return name, inner, d.others
}
