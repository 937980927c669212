package compress

import (
	"encoding/json"
	"strings"

	"mcpx/internal/base/wire"
)

// Value returns the JSON of a text that is exactly one JSON value, or a list or dict as Python prints it. If the text is JSON
// Lines, the result lines is true and the value is an array of the objects. ok is false for any other text.
func Value(text string) (value json.RawMessage, lines, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" || !strings.Contains("{[\"-0123456789tfn", text[:1]) {
		return nil, false, false
	}
	if value = json.RawMessage(text); wire.Valid(value) {
		return value, false, true
	}
	if literal, ok := fromPython(text); ok {
		return json.RawMessage(literal), false, true
	}
	value, ok = arrayOfLines(text)
	return value, ok, ok
}

// arrayOfLines converts JSON Lines to an array of the objects, without changing how the objects are written. ok is false if the
// text is not JSON Lines.
func arrayOfLines(text string) (value json.RawMessage, ok bool) {
	if text[0] != '{' {
		return nil, false
	}
	value = append(make(json.RawMessage, 0, len(text)+2), '[')
	for line := range objectLines(text) {
		if line[0] != '{' {
			return nil, false
		}
		at := len(value)
		if value = append(value, line...); !wire.Valid(value[at:]) {
			return nil, false
		}
		value = append(value, ',')
	}
	value[len(value)-1] = ']'
	return value, true
}
