package arguments

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/base/wire"
)

// edit is one change to arguments that do not fit the schema.
type edit struct {
	place []string
	value json.RawMessage // nil means that the member is removed
}

// maxMends bounds how often mended arguments are validated.
const maxMends = 4

// mend changes arguments whose meaning is clear so that they fit the schema. A string such as "5" or "true" becomes a number or
// boolean if the schema allows that there, but no string; and a string of JSON becomes this JSON where only the validation finds
// out what is allowed, not repair. A null for an optional property that allows no null is removed. The parameter value is the
// decoded object, and failure is the error of its validation. mend returns the object to use, and the error that remains, or nil.
// If no steps are left, the changed arguments are used: what was sent certainly does not fit.
func (c *compiled) mend(
	object json.RawMessage, value any, failure *fault, left *int,
) (json.RawMessage, Notes, *fault) {
	m := mender{root: value, fixed: make(map[string]bool)}
	m.strings(failure)
	edits, _ := m.edits(failure)
	for range maxMends {
		if len(edits) == 0 {
			break
		}
		mended := rewrite(object, edits)
		_, again := c.validate(mended, left)
		if again == nil {
			return mended, notes(edits), nil
		}
		// A null for a required property is kept, as the error about the null is clearer than the error "missing".
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
		switch {
		case e.value == nil:
			n.LeftOut = append(n.LeftOut, pointer(e.place))
		case e.value[0] != '{' && e.value[0] != '[':
			n.Converted = append(n.Converted, pointer(e.place))
		}
	}
	slices.Sort(n.LeftOut)
	slices.Sort(n.Converted)
	return n
}

// missed collects the places of the first missing properties from an error and its causes, as JSON pointers.
func missed(f *fault, places map[string]bool) {
	if f.keyword == "required" {
		for _, name := range f.names[:min(len(f.names), maxLeaves-len(places))] {
			places[pointer(member(f.at, name))] = true
		}
	}
	for _, cause := range f.causes {
		missed(cause, places)
	}
}

// mender derives edits from a validation error.
type mender struct {
	root any // the arguments
	// fixed contains the JSON pointers of strings that must not become a number or boolean, because the schema allows some string
	// there.
	fixed map[string]bool
	steps int
}

// strings fills the field fixed from a fault. If a string violates a keyword other than type, such as pattern, then the schema
// allows some other string at the same place, so the field gets this place.
func (m *mender) strings(f *fault) {
	if m.steps++; m.steps > maxLeaves {
		return
	}
	for _, cause := range f.causes {
		m.strings(cause)
	}
	if len(f.causes) > 0 || f.keyword == "type" {
		return
	}
	if only := f.literals(); only != nil && !slices.ContainsFunc(only, isString) {
		return
	}
	m.fixed[pointer(f.at)] = true
}

// literals returns the values that would fit, if the fault is that the value is none of them.
func (f *fault) literals() []any {
	switch f.keyword {
	case "enum":
		return f.schema.enum.values
	case "const":
		return f.schema.constant.values
	}
	return nil
}

func isString(value any) bool {
	_, ok := value.(string)
	return ok
}

// edits returns changes that correct a fault. The result whole reports whether these changes correct the fault completely. If
// the schema has alternatives (anyOf or oneOf), edits returns the changes for the first alternative whose faults can all be
// corrected.
func (m *mender) edits(f *fault) (found []edit, whole bool) {
	if m.steps++; m.steps > 2*maxLeaves {
		return nil, false
	}
	if len(f.causes) == 0 {
		one := m.edit(f)
		if one == nil {
			return nil, false
		}
		return []edit{*one}, true
	}
	either := f.keyword == "anyOf" || f.keyword == "oneOf"
	if f.keyword == "propertyNames" || f.keyword == "minContains" {
		return nil, false
	}
	whole = !either
	for _, cause := range f.causes {
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

// merged returns the edits of first, and the edits of second that are for other places.
func merged(first, second []edit) []edit {
	for _, e := range second {
		if !slices.ContainsFunc(first, func(have edit) bool { return slices.Equal(have.place, e.place) }) {
			first = append(first, e)
		}
	}
	return first
}

// edit returns the edit that corrects a fault without causes, or nil if there is none.
func (m *mender) edit(f *fault) *edit {
	place := f.at
	value, found := at(m.root, place)
	if value == nil && found && len(place) > 0 {
		parent, _ := at(m.root, place[:len(place)-1])
		if _, inObject := parent.(map[string]any); inObject {
			return &edit{place: place}
		}
	}
	text, ok := value.(string)
	if !ok || m.fixed[pointer(place)] {
		return nil
	}
	allowed, only := kinds(anyKind), f.literals()
	if f.keyword == "type" {
		allowed = f.schema.kinds
	} else if only == nil {
		return nil
	}
	if inner := jsonIn(text, allowed); inner != nil {
		if m := measure(inner); len(place)+m.depth <= maxDepth && m.digits <= maxDigits {
			return &edit{place, inner}
		}
	}
	number := isNumber(text) && (allowed&kindFraction != 0 || allowed&kindInteger != 0 && !strings.Contains(text, "."))
	boolean := allowed&kindBoolean != 0 && (text == "true" || text == "false")
	if !number && !boolean {
		return nil
	}
	if only != nil && !slices.ContainsFunc(only, func(v any) bool { return string(wire.Encode(v)) == text }) {
		return nil
	}
	return &edit{place, json.RawMessage(text)}
}

// at returns the value at a place in decoded JSON. place is a path of property names and array indexes.
func at(root any, place []string) (value any, found bool) {
	value = root
	for _, step := range place {
		switch container := value.(type) {
		case map[string]any:
			if value, found = container[step]; !found {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(container) {
				return nil, false
			}
			value = container[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// isNumber reports whether text is a JSON number without an exponent, of at most maxDigits characters.
func isNumber(text string) bool {
	other := func(c rune) bool { return c != '-' && c != '.' && (c < '0' || c > '9') }
	return len(text) <= maxDigits && strings.IndexFunc(text, other) < 0 &&
		json.Valid([]byte(text))
}

// rewrite returns value with the edits applied to its members or items. Other values stay unchanged, byte for byte.
func rewrite(value json.RawMessage, edits []edit) json.RawMessage {
	steps := make(map[string][]edit)
	for _, e := range edits {
		steps[e.place[0]] = append(steps[e.place[0]], edit{e.place[1:], e.value})
	}
	var out bytes.Buffer
	// put writes one member or item, with its edits applied.
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
		_ = wire.Members(value, func(name string, written, part []byte) bool { // cannot fail, as value is valid JSON
			put(name, append(slices.Clip(written), ':'), part)
			return true
		})
		out.WriteByte('}')
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(value, &list) // cannot fail, as value is valid JSON
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
