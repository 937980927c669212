package arguments

import (
	"bytes"
	"encoding/json"
	"maps"

	"mcpx/internal/base/wire"
)

// repair replaces strings that contain JSON by that JSON, wherever the schema allows an object or an array, but no string.
// Other values stay unchanged byte for byte.
func repair(arguments, schema json.RawMessage) json.RawMessage {
	if !suspicious(arguments) || len(schema) == 0 || len(schema) > maxSchemaBytes || measure(schema).depth > maxDepth {
		return arguments
	}
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return arguments
	}
	return (&repairer{root: root}).object(arguments, root, 0)
}

// suspicious reports whether a string in the arguments may begin like an object or an array.
func suspicious(arguments json.RawMessage) bool {
	return bytes.Contains(arguments, []byte(`"{`)) || bytes.Contains(arguments, []byte(`"[`)) ||
		bytes.Contains(arguments, []byte(`" `)) || bytes.Contains(arguments, []byte(`"\n`))
}

// repairer repairs one value. It counts its steps, and stops after too many, since schemas can refer to themselves.
type repairer struct {
	root  any
	steps int
}

const maxRepairSteps = 10000

// object repairs the members of value, which is an object. schema is the schema of this object.
func (r *repairer) object(value json.RawMessage, schema any, depth int) json.RawMessage {
	properties := r.properties(schema, 0)
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

func (r *repairer) value(value json.RawMessage, schema any, depth int) json.RawMessage {
	switch {
	case len(value) == 0:
		return value
	case value[0] == '{':
		return r.object(value, schema, depth)
	case value[0] == '[':
		return r.array(value, schema, depth)
	case value[0] != '"':
		return value
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		return value
	}
	inner := bytes.TrimSpace([]byte(text))
	if len(inner) == 0 || !json.Valid(inner) {
		return value
	}
	allowed := r.kinds(schema, 0)
	if allowed&kindString != 0 || !(inner[0] == '{' && allowed&kindObject != 0 || inner[0] == '[' && allowed&kindArray != 0) {
		return value
	}
	return r.value(inner, schema, depth+1)
}

func (r *repairer) array(value json.RawMessage, schema any, depth int) json.RawMessage {
	s, _ := r.follow(schema).(map[string]any)
	items, ok := s["items"]
	if !ok || depth > 16 {
		return value
	}
	return wire.EditEach(value, func(item json.RawMessage) json.RawMessage { return r.value(item, items, depth+1) })
}

// follow returns the schema to which the $ref of schema leads, or schema itself if it has none. It returns nil if the reference
// leads out of the document, or in a circle.
func (r *repairer) follow(schema any) any {
	for range 16 {
		s, ok := schema.(map[string]any)
		if !ok {
			return schema
		}
		ref, ok := s["$ref"].(string)
		if !ok {
			return schema
		}
		steps, ok := referenceSteps(ref)
		if !ok {
			return nil
		}
		if schema, ok = at(r.root, steps); !ok {
			return nil
		}
	}
	return nil
}

// properties returns the properties of an object schema and of its allOf, anyOf and oneOf.
func (r *repairer) properties(schema any, depth int) map[string]any {
	r.steps++
	s, ok := r.follow(schema).(map[string]any)
	if !ok || depth > 8 || r.steps > maxRepairSteps {
		return nil
	}
	all := make(map[string]any)
	own, _ := s["properties"].(map[string]any)
	maps.Copy(all, own)
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		parts, _ := s[keyword].([]any)
		for _, part := range parts {
			for name, sub := range r.properties(part, depth+1) {
				if _, ok := all[name]; !ok {
					all[name] = sub
				}
			}
		}
	}
	return all
}

// kinds is a set of types of values.
type kinds uint8

const (
	kindString kinds = 1 << iota
	kindObject
	kindArray
	kindNull
	kindBoolean
	kindInteger
	kindFraction // a number that is not an integer

	anyKind = 1<<iota - 1
)

var kindNames = map[string]kinds{
	"string": kindString, "object": kindObject, "array": kindArray,
	"null": kindNull, "boolean": kindBoolean, "integer": kindInteger, "number": kindInteger | kindFraction,
}

// kindsOf returns the types that the keyword type names; declared is its value. If the keyword is missing, all types are
// allowed.
func kindsOf(declared any) kinds {
	switch declared := declared.(type) {
	case string:
		return kindNames[declared]
	case []any:
		var all kinds
		for _, one := range declared {
			if name, ok := one.(string); ok {
				all |= kindNames[name]
			}
		}
		return all
	}
	return anyKind
}

// kinds returns the types that a schema allows by type, allOf, anyOf and oneOf. If these keywords allow all types, the keyword
// properties implies an object, and the keyword items implies an array.
func (r *repairer) kinds(schema any, depth int) kinds {
	r.steps++
	s, ok := r.follow(schema).(map[string]any)
	if !ok || depth > 8 || r.steps > maxRepairSteps {
		return anyKind
	}
	allowed := kindsOf(s["type"])
	all, _ := s["allOf"].([]any)
	for _, part := range all {
		allowed &= r.kinds(part, depth+1)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		parts, _ := s[keyword].([]any)
		if len(parts) == 0 {
			continue
		}
		var either kinds
		for _, part := range parts {
			either |= r.kinds(part, depth+1)
		}
		allowed &= either
	}
	if allowed != anyKind {
		return allowed
	}
	if _, ok := s["properties"]; ok {
		return kindObject
	}
	if _, ok := s["items"]; ok {
		return kindArray
	}
	return anyKind
}
