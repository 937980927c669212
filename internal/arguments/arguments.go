// Package arguments judges what a model sent as the arguments of a tool against
// the tool's JSON Schema: unpacked, repaired, bounded, and refused in words that
// a model can act on. Everything in it is pure.
package arguments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// ValidationError says why arguments do not fit a schema.
type ValidationError struct {
	// Violations are at most five, each "/path: what".
	Violations []string
	// Places are where the schema says what would be right: the path of each violation,
	// or of the name that may be meant.
	Places [][]string
	// More is how many others there are.
	More int
}

func (e *ValidationError) Error() string {
	text := strings.Join(e.Violations, "; ")
	if e.More > 0 {
		text += fmt.Sprintf("; and %d more", e.More)
	}
	return text
}

// Invalid is the error of one violation, "/path: what".
func Invalid(violation string) *ValidationError {
	return &ValidationError{Violations: []string{violation}, Places: [][]string{{}}}
}

// Notes are what a caller may want to know about arguments that were accepted.
type Notes struct {
	// Converted are the places (JSON pointers) of strings that were read as numbers
	// and booleans, LeftOut those of nulls for properties that allow none.
	Converted, LeftOut []string
	// Unknown are arguments that the schema lets pass, but does not describe.
	Unknown []Unknown
}

// Read makes the arguments object of a call out of what a model sent: an object,
// a string that holds one, or nothing. With check it must fit the schema; without,
// its nesting alone is bounded. The only errors are [*ValidationError].
//
// Arguments that fit as they were sent are read once. All others take the long
// way: they are repaired first, the JSON Schema library has the last word, and
// what it refuses is mended if its meaning is clear.
func (s *Schemas) Read(sent, schema json.RawMessage, check bool) (json.RawMessage, Notes, error) {
	object, err := unpack(sent)
	if err != nil {
		return nil, Notes{}, err
	}
	var c *compiled
	if check {
		c = s.compiled(schema)
		if fits, strange := c.quick.fits(object); fits && strange {
			return object, Notes{Unknown: c.unknown(object)}, nil
		} else if fits {
			return object, Notes{}, nil
		}
	}
	if !json.Valid(object) {
		return nil, Notes{}, Invalid("/: arguments is not valid JSON")
	}
	object = repair(object, schema)
	measured := measure(object)
	if measured.depth > maxDepth {
		// A server that reads them recursively would end, for all clients.
		return nil, Notes{}, Invalid(fmt.Sprintf("/: nested deeper than %d", maxDepth))
	}
	if !check || !c.checks(measured) {
		return object, Notes{}, nil
	}
	var notes Notes
	value, failure := c.validate(object)
	if failure != nil {
		object, notes, failure = c.mend(object, value, failure)
	}
	notes.Unknown = c.unknown(object)
	if failure != nil {
		return nil, Notes{}, violations(failure, c.schema, value, notes.Unknown)
	}
	return object, notes, nil
}

// unpack finds the object in what was sent: models send objects as strings. What
// it returns begins as an object, and need not be valid JSON.
func unpack(sent json.RawMessage) (json.RawMessage, error) {
	trimmed := bytes.TrimSpace(sent)
	if len(trimmed) > 0 && trimmed[0] == '"' {
		var inner string
		if err := json.Unmarshal(trimmed, &inner); err != nil {
			return nil, Invalid("/: arguments is not valid JSON")
		}
		trimmed = bytes.TrimSpace([]byte(inner))
	}
	switch {
	case len(trimmed) == 0, string(trimmed) == "null":
		return json.RawMessage("{}"), nil
	case trimmed[0] == '{':
		return trimmed, nil
	}
	return nil, Invalid("/: arguments must be an object")
}
