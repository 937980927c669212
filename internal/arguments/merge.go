package arguments

import (
	"encoding/json"

	"mcpx/internal/base/wire"
)

// Merged returns the arguments for one of several calls. common has the members for all these calls. specific has the members for
// this call, which take precedence. Each of the two parameters is an object, a string that contains an object, or nothing. Errors
// are [*ValidationError].
func Merged(common, specific json.RawMessage) (json.RawMessage, error) {
	shared, err := unpack(common)
	if err != nil {
		return nil, err
	}
	object, err := unpack(specific)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	merged := []byte{'{'}
	add := func(written, value []byte) { merged = wire.AppendMember(merged, written, value) }
	if wire.Fields(object, func(name string, _ []byte) bool { has[name] = true; return true }) != nil {
		return nil, Invalid("/: " + NotJSON(object))
	}
	if wire.Members(shared, func(name string, written, value []byte) bool {
		if !has[name] {
			add(written, value)
		}
		return true
	}) != nil {
		return nil, Invalid("/: arguments " + NotJSON(shared))
	}
	// cannot fail, as object was read before
	_ = wire.Members(object, func(_ string, written, value []byte) bool { add(written, value); return true })
	return append(merged, '}'), nil
}
