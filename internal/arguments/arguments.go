// Package arguments checks the arguments that a model sends for a tool against the tool's JSON Schema. It bounds the work,
// repairs common mistakes, and writes errors that a model can act on. It does no input or output.
package arguments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ValidationError says why the arguments of a call are refused: they do not fit the schema, are no JSON object, are nested too
// deeply, or name something that the called tool refuses.
type ValidationError struct {
	// Violations are the first violations, each in the form "/path: what".
	Violations []string
	// Places contains a path into the arguments (property names and array indexes) for each violation. The path leads to the
	// violation or, if a name is misspelled, to where the argument with the right name would be. The schema at this path helps
	// the model to correct the arguments.
	Places [][]string
	// More is the number of violations left out.
	More int
	// Reference means that a reference gives no value. What the tool takes then does not help the model.
	Reference bool
}

func (e *ValidationError) Error() string {
	text := strings.Join(e.Violations, "; ")
	if e.More > 0 {
		text += fmt.Sprintf("; and %d more", e.More)
	}
	return text
}

// Invalid returns an error with one violation, in the form "/path: what".
func Invalid(violation string) *ValidationError {
	return &ValidationError{Violations: []string{violation}, Places: [][]string{{}}}
}

// NotJSON says what is wrong with a text that should be JSON, and quotes the end of what comes before the mistake.
func NotJSON(text []byte) string {
	const most = 24
	wrong, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(text, new(json.RawMessage)))
	if !ok {
		return "is not valid JSON"
	}
	end := len(text)
	if strings.HasPrefix(wrong.Error(), "invalid character") {
		end = int(wrong.Offset) - 1 // the offset is after the character
	}
	before := []rune(string(text[:end]))
	return fmt.Sprintf("is not valid JSON: %v, after `%s`", wrong, string(before[max(0, len(before)-most):]))
}

// Notes are remarks on arguments that were accepted.
type Notes struct {
	// Converted contains the JSON pointers of strings that became numbers or booleans. LeftOut contains the JSON pointers of
	// nulls that were removed because their properties allow no null.
	Converted, LeftOut []string
	// Unknown are arguments that the schema allows, but does not describe.
	Unknown []Unknown
	// Unwrapped is set if the model wrapped the arguments in an object with one member, as in {"args": {…}}, and mcpx used the
	// inner object. Then it is the name of this member.
	Unwrapped string
}

// Read returns the arguments object of a call. raw is what the model sent: an object, a string that contains an object, or
// nothing. If check is set, the object must fit the schema, unless mcpx cannot check it in time (see [Schemas]). In any case,
// the object must not be nested too deeply. All errors are [*ValidationError].
//
// Arguments that already fit are not changed; most of them need one pass over their bytes. Other arguments are first repaired
// (strings that contain JSON become this JSON), then validated against the whole schema. If they still do not fit, but their
// meaning is clear, they are changed to fit (see mend).
func (s *Schemas) Read(raw, schema json.RawMessage, check bool) (json.RawMessage, Notes, error) {
	left := int(maxSteps)
	return s.read(raw, schema, check, &left)
}

func (s *Schemas) read(raw, schema json.RawMessage, check bool, left *int) (json.RawMessage, Notes, error) {
	object, err := unpack(raw)
	if err != nil {
		return nil, Notes{}, err
	}
	c := s.compiled(schema)
	if check {
		fits, others := c.quick.fits(object)
		if fits && !others {
			return object, Notes{}, nil
		}
		if name, inner, open := c.schema.wrapper(object); inner != nil && !(open && c.takes(object, left)) {
			if read, notes, err := s.read(inner, schema, true, left); err == nil {
				notes.Unwrapped = name
				return read, notes, nil
			}
		}
		if fits {
			return object, Notes{Unknown: c.unknown(object)}, nil
		}
	}
	if !json.Valid(object) {
		return nil, Notes{}, Invalid("/: arguments " + NotJSON(object))
	}
	object = c.repaired(object, check, left)
	measured := measure(object)
	if measured.depth > maxDepth {
		// A deeply nested object might crash a server that reads it recursively, and thereby affect all clients of the server.
		return nil, Notes{}, Invalid(fmt.Sprintf("/: nested deeper than %d", maxDepth))
	}
	if !check || !c.checks(measured) {
		return object, Notes{}, nil
	}
	var notes Notes
	value, failure := c.validate(object, left)
	if failure != nil {
		object, notes, failure = c.mend(object, value, failure, left)
	}
	notes.Unknown = c.unknown(object)
	if failure != nil {
		return nil, Notes{}, violations(failure, value, notes.Unknown)
	}
	return object, notes, nil
}

// repaired returns the repaired object (see repair). An object that fits as it was sent is not changed, although one of its
// strings may look like an argument of another alternative.
func (c *compiled) repaired(object json.RawMessage, check bool, left *int) json.RawMessage {
	repaired := c.schema.repair(object)
	if check && !bytes.Equal(repaired, object) && c.takes(object, left) {
		return object
	}
	return repaired
}

// takes reports whether an object fits as it was sent, or whether only the server knows.
func (c *compiled) takes(object json.RawMessage, left *int) bool {
	measured := measure(object)
	if !json.Valid(object) || measured.depth > maxDepth || !c.checks(measured) {
		return false
	}
	_, failure := c.validate(object, left)
	return failure == nil && *left >= 0
}

// unpack returns the object that a model sent, or {} if it sent nothing or null. Some models send the object in a string. The
// result begins with a brace, but may be invalid JSON.
func unpack(raw json.RawMessage) (json.RawMessage, error) {
	trimmed := bytes.TrimSpace(raw)
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
