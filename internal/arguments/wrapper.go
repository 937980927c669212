package arguments

import (
	"encoding/json"
	"strings"

	"mcpx/internal/base/wire"
)

// wrapper recognizes an object whose only member contains the actual arguments: some models send {"args": {…}} or {"arguments":
// {…}}, as if the tool had one parameter. It returns the name and the value of that member. The schema must not describe this
// name, nor have a subschema for names that it does not describe, but must describe a member of the value. For any other
// object, inner is nil.
func (s *schema) wrapper(object json.RawMessage) (name string, inner json.RawMessage) {
	members := 0
	if s == nil || wire.Fields(object, func(key string, value []byte) bool {
		members++
		name, inner = strings.Clone(key), value
		return members == 1
	}) != nil || members != 1 || name != "args" && name != "arguments" {
		return "", nil
	}
	inner, err := unpack(inner)
	if err != nil {
		return "", nil
	}
	d := described{names: make(map[string]bool), seen: make(map[*schema]bool)}
	if d.add(s); d.others || d.names[name] {
		return "", nil
	}
	known := false
	_ = wire.Fields(inner, func(key string, _ []byte) bool { // invalid JSON is found later, when the value is read
		known = d.names[key]
		return !known
	})
	if !known {
		return "", nil
	}
	return name, inner
}
