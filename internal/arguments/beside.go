package arguments

import (
	"bytes"
	"encoding/json"

	"mcpx/internal/base/wire"
)

// With adds to the arguments sent the members of another object, beside, which the model has put next to the arguments instead of
// into them. The schema must declare each of these members by name, and the arguments must not contain it with another value.
// Otherwise With returns an error whose violation is the text stray, because the members may be a mistake.
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
