package arguments

import (
	"bytes"
	"encoding/json"

	"mcpx/internal/base/wire"
)

// With adds the members of an object that was sent beside the arguments to the arguments.
// The schema must declare each of them by its name, and the arguments must not have it with
// another value: anything else may be a mistake, and is an error with the violation stray.
func With(sent, beside, schema json.RawMessage, stray string) (json.RawMessage, error) {
	object, err := unpack(sent)
	if err != nil {
		return nil, err
	}
	var declared struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &declared) != nil {
		return nil, Invalid(stray)
	}
	given := map[string][]byte{}
	if wire.Fields(object, func(name string, value []byte) bool { given[name] = value; return true }) != nil {
		return nil, Invalid("/: arguments is not valid JSON")
	}
	merged := bytes.TrimSuffix(bytes.TrimSpace(bytes.Clone(object)), []byte("}"))
	fits := true
	err = wire.Members(beside, func(name string, written, value []byte) bool {
		_, known := declared.Properties[name]
		before, twice := given[name]
		switch {
		case !known || twice && !bytes.Equal(before, value):
			fits = false
		case !twice:
			if len(given) > 0 {
				merged = append(merged, ',')
			}
			merged = append(append(append(merged, written...), ':'), value...)
			given[name] = value
		}
		return fits
	})
	if err != nil || !fits {
		return nil, Invalid(stray)
	}
	return append(merged, '}'), nil
}
