package arguments

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"mcpx/internal/base/wire"
)

// repair replaces strings that contain JSON by that JSON, wherever the schema allows an object or an array, but no string.
// Other values stay unchanged byte for byte.
func (s *schema) repair(object json.RawMessage) json.RawMessage {
	if s == nil || !suspicious(object) {
		return object
	}
	return new(repairer).object(object, s, 0)
}

// suspicious reports whether a string in the arguments may begin like an object or an array.
func suspicious(arguments json.RawMessage) bool {
	return bytes.Contains(arguments, []byte(`"{`)) || bytes.Contains(arguments, []byte(`"[`)) ||
		bytes.Contains(arguments, []byte(`" `)) || bytes.Contains(arguments, []byte(`"\n`))
}

// repairer repairs one value. It counts its steps, and stops after too many, since schemas can refer to themselves.
type repairer struct{ steps int }

const (
	maxRepairSteps = 10000
	// propertiesOfStep is how many properties are copied in the time for a step.
	propertiesOfStep = 50
)

// object repairs the members of value, which is an object. s is the schema of this object.
func (r *repairer) object(value json.RawMessage, s *schema, depth int) json.RawMessage {
	properties := r.properties(s, 0)
	if len(properties) == 0 || depth > 16 {
		return value
	}
	var out bytes.Buffer
	changed := false
	out.WriteByte('{')
	err := wire.Fields(value, func(key string, member []byte) bool {
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		fixed := member
		if sub, ok := properties[key]; ok {
			fixed = r.value(member, sub, depth+1)
			changed = changed || !bytes.Equal(fixed, member)
		}
		out.Write(wire.Encode(key))
		out.WriteByte(':')
		out.Write(fixed)
		return true
	})
	if err != nil || !changed {
		return value
	}
	out.WriteByte('}')
	return out.Bytes()
}

func (r *repairer) value(value json.RawMessage, s *schema, depth int) json.RawMessage {
	switch {
	case len(value) == 0:
		return value
	case value[0] == '{':
		return r.object(value, s, depth)
	case value[0] == '[':
		return r.array(value, s, depth)
	case value[0] != '"':
		return value
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		return value
	}
	if inner := jsonIn(text, r.kinds(s, 0)); inner != nil {
		return r.value(inner, s, depth+1)
	}
	return value
}

// jsonIn returns the object or array that a text contains, or nil if it is not allowed there, or a string is.
func jsonIn(text string, allowed kinds) json.RawMessage {
	inner := bytes.TrimSpace([]byte(text))
	if len(inner) == 0 || allowed&kindString != 0 || !json.Valid(inner) {
		return nil
	}
	if inner[0] == '{' && allowed&kindObject != 0 || inner[0] == '[' && allowed&kindArray != 0 {
		return inner
	}
	return nil
}

func (r *repairer) array(value json.RawMessage, s *schema, depth int) json.RawMessage {
	items := r.items(s, 0)
	if items == nil || depth > 16 {
		return value
	}
	return wire.EditEach(value, func(item json.RawMessage) json.RawMessage { return r.value(item, items, depth+1) })
}

// may reports whether another schema may be looked at, which is depth schemas below the first one for the same value.
func (r *repairer) may(s *schema, depth int) bool {
	r.steps++
	return s != nil && depth <= 16 && r.steps <= maxRepairSteps
}

// items returns the schema of all items of an array.
func (r *repairer) items(s *schema, depth int) *schema {
	switch {
	case !r.may(s, depth):
		return nil
	case s.items != nil:
		return s.items
	}
	for _, part := range slices.Concat(s.refs, s.allOf) {
		if items := r.items(part, depth+1); items != nil {
			return items
		}
	}
	var either []*schema
	for _, part := range slices.Concat(s.anyOf, s.oneOf) {
		if items := r.items(part, depth+1); items != nil {
			either = append(either, items)
		}
	}
	return anyOf(either)
}

// anyOf returns a schema of the values that fit one of the schemas, or nil if there are none.
func anyOf(all []*schema) *schema {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return &schema{kinds: anyKind, combinedKeywords: combinedKeywords{anyOf: all}}
}

// properties returns the properties of an object schema and of its $ref, allOf, anyOf and oneOf. A property that several
// alternatives have may be as one of them says.
func (r *repairer) properties(s *schema, depth int) map[string]*schema {
	if !r.may(s, depth) {
		return nil
	}
	both, alternatives := slices.Concat(s.refs, s.allOf), slices.Concat(s.anyOf, s.oneOf)
	if len(both)+len(alternatives) == 0 {
		return s.properties
	}
	all := make(map[string]*schema, len(s.properties))
	maps.Copy(all, s.properties)
	for _, part := range both {
		for name, sub := range r.properties(part, depth+1) {
			if all[name] == nil {
				all[name] = sub
			}
		}
	}
	either := make(map[string][]*schema)
	for _, part := range alternatives {
		for name, sub := range r.properties(part, depth+1) {
			if all[name] == nil {
				either[name] = append(either[name], sub)
			}
		}
	}
	for name, subs := range either {
		all[name] = anyOf(subs)
	}
	r.steps += len(all) / propertiesOfStep
	return all
}

// kinds returns the types that a schema allows by type, $ref, allOf, anyOf and oneOf.
func (r *repairer) kinds(s *schema, depth int) kinds {
	if !r.may(s, depth) || s.boolean != nil {
		return anyKind
	}
	allowed := s.kinds
	for _, part := range slices.Concat(s.refs, s.allOf) {
		allowed &= r.kinds(part, depth+1)
	}
	for _, parts := range [][]*schema{s.anyOf, s.oneOf} {
		var either kinds
		for _, part := range parts {
			either |= r.kinds(part, depth+1)
		}
		if len(parts) > 0 {
			allowed &= either
		}
	}
	return allowed
}
