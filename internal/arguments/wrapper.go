package arguments

import (
	"encoding/json"
	"strings"

	"mcpx/internal/base/wire"
)

// wrapper returns the name and the value of the only member of an object if it merely wraps the arguments: some models send
// {"args": {…}}, as for a function with one parameter. The schema does not describe that name, but a member inside. inner is nil for
// any other object.
func wrapper(object, schema json.RawMessage) (name string, inner json.RawMessage) {
	members := 0
	if wire.Fields(object, func(key string, value []byte) bool {
		members++
		name, inner = strings.Clone(key), value
		return members == 1
	}) != nil || members != 1 || name != "args" && name != "arguments" {
		return "", nil
	}
	inner, err := unpack(inner)
	var described struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err != nil || json.Unmarshal(schema, &described) != nil || described.Properties[name] != nil {
		return "", nil
	}
	known := false
	_ = wire.Fields(inner, func(key string, _ []byte) bool { // what is invalid is found when it is read
		known = described.Properties[key] != nil
		return !known
	})
	if !known {
		return "", nil
	}
	return name, inner
}
