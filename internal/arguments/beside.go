package arguments

import (
	"bytes"
	"encoding/json"

	"mcpx/internal/base/wire"
)

// With adds the members of the object extra to the arguments. The model has put these members next to the arguments instead of
// into them. The schema must declare each of the members by name, and the arguments must not contain it with another value.
// Otherwise With returns an error with message as its violation, because the members may be a mistake.
func (s *Schemas) With(arguments, extra, schema json.RawMessage, message string) (json.RawMessage, error) {
	object, err := unpack(arguments)
	if err != nil {
		return nil, err
	}
	declared := s.compiled(schema).schema
	if declared == nil {
		return nil, Invalid(message)
	}
	given := map[string][]byte{}
	if wire.Fields(object, func(name string, value []byte) bool { given[name] = value; return true }) != nil {
		return nil, Invalid("/: arguments " + NotJSON(object))
	}
	merged := bytes.TrimSuffix(bytes.TrimSpace(bytes.Clone(object)), []byte("}"))
	fits := true
	err = wire.Members(extra, func(name string, written, value []byte) bool {
		_, known := declared.properties[name]
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
		return nil, Invalid(message)
	}
	return append(merged, '}'), nil
}
