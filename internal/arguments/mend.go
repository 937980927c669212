package arguments

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"mcpx/internal/base/wire"
)

// edit is one change of arguments that do not fit.
type edit struct {
	place []string
	value json.RawMessage // nil leaves the member out
}

// maxMends bounds how often mended arguments are validated.
const maxMends = 4

// mend changes arguments that do not fit so that they do, where the meaning is
// clear: a string that writes a number or a boolean becomes that where only that
// fits, and a null that does not fit an optional property is left out. failure is
// what is wrong with them; the result is what is wrong with what it returns.
func (c *compiled) mend(
	object json.RawMessage, value any, failure *jsonschema.ValidationError,
) (json.RawMessage, Notes, *jsonschema.ValidationError) {
	m := mender{root: value, fixed: make(map[string]bool)}
	m.strings(failure)
	edits, _ := m.edits(failure)
	for range maxMends {
		if len(edits) == 0 {
			break
		}
		mended := rewrite(object, edits)
		_, again := c.validate(mended)
		if again == nil {
			return mended, notes(edits), nil
		}
		// A property that must be there is better refused as null than as missing.
		missing := make(map[string]bool)
		missed(again, missing)
		kept := slices.DeleteFunc(slices.Clone(edits), func(e edit) bool { return e.value == nil && missing[pointer(e.place)] })
		if len(kept) == len(edits) {
			return object, Notes{}, again
		}
		edits = kept
	}
	return object, Notes{}, failure
}

func notes(edits []edit) Notes {
	var n Notes
	for _, e := range edits {
		if e.value == nil {
			n.LeftOut = append(n.LeftOut, pointer(e.place))
		} else {
			n.Converted = append(n.Converted, pointer(e.place))
		}
	}
	slices.Sort(n.LeftOut)
	slices.Sort(n.Converted)
	return n
}

// missed gathers the places where the library found nothing.
func missed(e *jsonschema.ValidationError, places map[string]bool) {
	if k, ok := e.ErrorKind.(*kind.Required); ok {
		for _, name := range k.Missing {
			places[pointer(member(e.InstanceLocation, name))] = true
		}
	}
	for _, cause := range e.Causes {
		missed(cause, places)
	}
}

// mender finds edits in what the library says.
type mender struct {
	root any // the arguments
	// fixed are the places whose strings stay: another string would fit.
	fixed map[string]bool
	steps int
}

// strings marks the places of strings that are judged by more than their type.
func (m *mender) strings(e *jsonschema.ValidationError) {
	if m.steps++; m.steps > maxLeaves {
		return
	}
	for _, cause := range e.Causes {
		m.strings(cause)
	}
	if len(e.Causes) > 0 {
		return
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return
	case *kind.Enum:
		if !slices.ContainsFunc(k.Want, isString) {
			return
		}
	case *kind.Const:
		if !isString(k.Want) {
			return
		}
	}
	m.fixed[pointer(e.InstanceLocation)] = true
}

func isString(value any) bool {
	_, ok := value.(string)
	return ok
}

// edits mend what they can of e; whole says that this is all of it. Of
// alternatives, those of the first that they mend wholly.
func (m *mender) edits(e *jsonschema.ValidationError) (found []edit, whole bool) {
	if m.steps++; m.steps > 2*maxLeaves {
		return nil, false
	}
	if len(e.Causes) == 0 {
		one := m.edit(e)
		if one == nil {
			return nil, false
		}
		return []edit{*one}, true
	}
	either := false
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		either = true
	case *kind.PropertyNames, *kind.Contains, *kind.Not:
		return nil, false
	}
	whole = !either
	for _, cause := range e.Causes {
		some, all := m.edits(cause)
		if either && all {
			return some, true
		}
		if !either {
			found, whole = merged(found, some), whole && all
		}
	}
	return found, whole
}

// merged adds edits of other places.
func merged(edits, more []edit) []edit {
	for _, e := range more {
		if !slices.ContainsFunc(edits, func(have edit) bool { return slices.Equal(have.place, e.place) }) {
			edits = append(edits, e)
		}
	}
	return edits
}

// edit mends one value; nil if nothing does.
func (m *mender) edit(e *jsonschema.ValidationError) *edit {
	value, inObject := at(m.root, e.InstanceLocation)
	if value == nil && inObject {
		return &edit{place: e.InstanceLocation}
	}
	text, ok := value.(string)
	if !ok || m.fixed[pointer(e.InstanceLocation)] {
		return nil
	}
	var allowed kinds
	var only []any
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		for _, name := range k.Want {
			allowed |= kindNames[name]
		}
	case *kind.Enum:
		allowed, only = anyKind, k.Want
	case *kind.Const:
		allowed, only = anyKind, []any{k.Want}
	default:
		return nil
	}
	number := allowed&kindFraction != 0 && isNumber(text) || allowed&kindInteger != 0 && isNumber(text) && !strings.Contains(text, ".")
	boolean := allowed&kindBoolean != 0 && (text == "true" || text == "false")
	if !number && !boolean {
		return nil
	}
	if only != nil && !slices.ContainsFunc(only, func(v any) bool { return string(wire.Encode(v)) == text }) {
		return nil
	}
	return &edit{e.InstanceLocation, json.RawMessage(text)}
}

// at finds a value in decoded JSON; inObject says that it is a member.
func at(root any, place []string) (value any, inObject bool) {
	value = root
	for _, step := range place {
		switch container := value.(type) {
		case map[string]any:
			if value, inObject = container[step]; !inObject {
				return false, false
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(container) {
				return false, false
			}
			value, inObject = container[i], false
		default:
			return false, false
		}
	}
	return value, inObject
}

// isNumber reports whether text is a number as JSON writes it, without exponent.
func isNumber(text string) bool {
	other := func(c rune) bool { return c != '-' && c != '.' && (c < '0' || c > '9') }
	return len(text) <= maxDigits && strings.IndexFunc(text, other) < 0 &&
		json.Valid([]byte(text))
}

// rewrite makes edits below value; all the rest stays as it was written.
func rewrite(value json.RawMessage, edits []edit) json.RawMessage {
	steps := make(map[string][]edit)
	for _, e := range edits {
		steps[e.place[0]] = append(steps[e.place[0]], edit{e.place[1:], e.value})
	}
	var out bytes.Buffer
	// put writes one member or item, edited.
	put := func(step string, key, part []byte) {
		below := steps[step]
		switch {
		case len(below) == 1 && len(below[0].place) == 0:
			if part = below[0].value; part == nil {
				return
			}
		case len(below) > 0:
			part = rewrite(part, below)
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		out.Write(key)
		out.Write(part)
	}
	switch value[0] {
	case '{':
		out.WriteByte('{')
		_ = wire.Members(value, func(name string, written, part []byte) bool { // it was read before
			put(name, append(slices.Clip(written), ':'), part)
			return true
		})
		out.WriteByte('}')
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(value, &list) // it was read before
		out.WriteByte('[')
		for i, item := range list {
			put(strconv.Itoa(i), nil, item)
		}
		out.WriteByte(']')
	default:
		return value
	}
	return out.Bytes()
}
