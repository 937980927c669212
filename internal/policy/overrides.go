package policy

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/pattern"
	"mcpx/internal/base/wire"
)

// overridden returns a tool as corrected by those overrides whose globs match its name. If several of them set the same member, the
// first one counts. If none matches, it returns t itself. An override cannot give the tool a name for which isTaken returns true.
func overridden(overrides []conf.Override, t *catalog.Tool, isTaken func(name string) bool) *catalog.Tool {
	var all conf.Override
	for _, o := range overrides {
		if !Match([]string{o.Glob}, t.Name) {
			continue
		}
		if all.Name == "" {
			all.Name = o.Name
		}
		if all.Description == nil {
			all.Description = o.Description
		}
		all.Annotations = wire.Merge(all.Annotations, o.Annotations)
		all.Arguments = wire.Merge(all.Arguments, o.Arguments)
	}
	if all.Name == t.Name || all.Name != "" && isTaken(all.Name) {
		all.Name = ""
	}
	if all.Name == "" && all.Description == nil && all.Annotations == nil && all.Arguments == nil {
		return t
	}
	raw := t.Raw
	if all.Name != "" {
		raw = wire.Set(raw, "name", wire.Encode(all.Name))
	}
	if all.Description != nil {
		raw = wire.Set(raw, "description", wire.Encode(*all.Description))
	}
	if all.Annotations != nil {
		raw = wire.Set(raw, "annotations", wire.Merge(all.Annotations, t.Annotations))
	}
	if all.Arguments != nil && len(t.InputSchema) > 0 && t.InputSchema[0] == '{' {
		raw = wire.Set(raw, "inputSchema", without(t.InputSchema, keys(all.Arguments)))
	}
	repaired, err := catalog.DecodeTool(raw)
	if err != nil {
		return t // impossible: the definition was valid JSON
	}
	repaired.Own, repaired.Fixed = t.Name, all.Arguments
	return &repaired
}

// without removes the properties with the names in hidden from an object schema, and from its lists of required properties. If
// another part of the schema refers to a removed property, without moves the schema of this property to $defs.
func without(schema json.RawMessage, hidden []string) json.RawMessage {
	removed := wire.Filter(wire.Member(schema, "properties"), func(name string, _ []byte) bool { return slices.Contains(hidden, name) })
	return withReferred(stripped(schema, hidden, 0), removed)
}

// maxBranches is how many levels of nested allOf, anyOf and oneOf the func stripped follows.
const maxBranches = 16

// stripped removes properties from an object schema. It does so also in allOf, anyOf and oneOf, whose schemas are for the same
// object. depth is how many levels of allOf, anyOf and oneOf are around the schema.
func stripped(schema json.RawMessage, hidden []string, depth int) json.RawMessage {
	if schema[0] != '{' || depth > maxBranches {
		return schema
	}
	out := []byte{'{'}
	_ = wire.Members(schema, func(name string, written, value []byte) bool {
		switch {
		case name == "properties" && value[0] == '{':
			value = wire.Without(value, hidden...)
		case name == "required" && value[0] == '[':
			value = edited(value, func(element json.RawMessage) json.RawMessage {
				if name, ok := wire.Text(element); ok && slices.Contains(hidden, name) {
					return nil
				}
				return element
			})
		case (name == "allOf" || name == "anyOf" || name == "oneOf") && value[0] == '[':
			value = edited(value, func(element json.RawMessage) json.RawMessage { return stripped(element, hidden, depth+1) })
		}
		out = wire.AppendMember(out, written, value)
		return true
	})
	return append(out, '}')
}

// edited replaces each element of an array by what f returns, and leaves out the elements for which f returns nil.
func edited(array json.RawMessage, f func(element json.RawMessage) json.RawMessage) json.RawMessage {
	out := []byte{'['}
	_ = wire.Elements(array, func(element []byte) bool {
		if element = f(element); element == nil {
			return true
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, element...)
		return true
	})
	return append(out, ']')
}

// withReferred adds to $defs each removed property to which the schema still refers, and changes the references. removed has the
// schemas of the removed properties. Such references are common: if zod needs the schema of a property x again elsewhere, it writes
// {"$ref": "#/properties/x"} there.
func withReferred(schema, removed json.RawMessage) json.RawMessage {
	m := mover{removed: removed, names: map[string]string{}, taken: map[string]bool{}}
	for _, name := range keys(wire.Member(schema, "$defs")) {
		m.taken[name] = true
	}
	schema = m.move(schema)
	if len(m.found) == 0 {
		return schema
	}
	var added json.RawMessage
	for i := 0; i < len(m.found); i++ { // move may append to m.found
		added = wire.WithMember(added, m.names[m.found[i]], m.move(wire.Member(removed, m.found[i])))
	}
	return wire.Set(schema, "$defs", wire.Merge(wire.Member(schema, "$defs"), added))
}

// mover changes references to removed properties of a schema into references to $defs.
type mover struct {
	removed json.RawMessage
	found   []string          // the properties to which there are references
	names   map[string]string // their names in $defs
	taken   map[string]bool   // all names in $defs
}

// reference matches a member "$ref" of a schema. It matches nothing within strings, because quotes are escaped there.
var reference = pattern.New(`"\$ref"\s*:\s*("(?:[^"\\]|\\.)*")`)

func (m *mover) move(schema json.RawMessage) json.RawMessage {
	return json.RawMessage(reference.ReplaceAllStringFunc(string(schema), func(member string) string {
		pointer, _ := wire.Text([]byte(reference.FindStringSubmatch(member)[1]))
		path, ok := strings.CutPrefix(pointer, "#/properties/")
		written, _, _ := strings.Cut(path, "/")
		name, err := url.PathUnescape(written)
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		if !ok || err != nil || wire.Member(m.removed, name) == nil {
			return member
		}
		if m.names[name] == "" {
			moved := name
			for m.taken[moved] {
				moved += "_"
			}
			m.found, m.names[name], m.taken[moved] = append(m.found, name), moved, true
		}
		longer := strings.TrimPrefix(m.names[name], name)
		return `"$ref":` + string(wire.Encode("#/$defs/"+written+longer+path[len(written):]))
	}))
}

func keys(object json.RawMessage) (all []string) {
	_ = wire.Fields(object, func(name string, _ []byte) bool {
		all = append(all, name)
		return true
	})
	return all
}

// Arguments returns the arguments of a call. If an override fixes the values of some, these replace what the caller sent.
func Arguments(t *catalog.Tool, arguments json.RawMessage) json.RawMessage {
	return wire.Merge(t.Fixed, arguments)
}
