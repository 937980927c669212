package policy

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/pattern"
	"mcpx/internal/base/wire"
)

// overridden returns a tool as corrected by the overrides whose names match: each member is taken from the first of them that has
// it. If none matches, it returns the tool itself. An override cannot give the tool a name for which the func isTaken returns true.
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
		return t // cannot happen: the definition was valid JSON
	}
	repaired.Own, repaired.Fixed = t.Name, all.Arguments
	return &repaired
}

// without removes properties from an object schema, and from its lists of required properties. What other parts of the schema
// refer to is moved to $defs.
func without(schema json.RawMessage, hidden []string) json.RawMessage {
	s := stripper{root: schema, hidden: hidden}
	return withReferred(s.strip(schema, 0), schema, hidden)
}

const (
	// maxBranches is how deeply allOf, anyOf, oneOf and references may be nested so that properties are removed from their schemas.
	maxBranches = 16
	// maxInlined is how many references may be replaced by schemas without the properties.
	maxInlined = 100
)

// stripper removes properties from an object schema and from the schemas in it that are for the same object.
type stripper struct {
	root    json.RawMessage
	hidden  []string
	removed int // how often something was removed
	inlined int // how many references were replaced
}

func (s *stripper) strip(schema json.RawMessage, depth int) json.RawMessage {
	if schema[0] != '{' || depth > maxBranches {
		return schema
	}
	out := []byte{'{'}
	var referred json.RawMessage
	_ = wire.Members(schema, func(name string, written, value []byte) bool {
		switch {
		case name == "properties" && value[0] == '{':
			value = s.members(value, nil)
		case name == "required" && value[0] == '[':
			value = s.names(value)
		case (name == "dependentRequired" || name == "dependencies") && value[0] == '{':
			value = s.members(value, s.names)
		case (name == "allOf" || name == "anyOf" || name == "oneOf") && value[0] == '[':
			value = edited(value, func(element json.RawMessage) json.RawMessage { return s.strip(element, depth+1) })
		case name == "$ref" && s.inlined < maxInlined:
			if referred = s.referred(value, depth); referred != nil {
				return true
			}
		}
		out = wire.AppendMember(out, written, value)
		return true
	})
	out = append(out, '}')
	if referred == nil {
		return out
	}
	all := append([]byte{'['}, referred...)
	_ = wire.Elements(wire.Member(out, "allOf"), func(element []byte) bool {
		all = append(append(all, ','), element...)
		return true
	})
	return wire.Set(out, "allOf", append(all, ']'))
}

// members removes the properties from the members of an object, and changes the other members that are arrays with the func array, which
// may be nil.
func (s *stripper) members(object []byte, array func([]byte) json.RawMessage) json.RawMessage {
	out := []byte{'{'}
	_ = wire.Members(object, func(name string, written, value []byte) bool {
		if slices.Contains(s.hidden, name) {
			s.removed++
			return true
		}
		if array != nil && value[0] == '[' {
			value = array(value)
		}
		out = wire.AppendMember(out, written, value)
		return true
	})
	return append(out, '}')
}

// names removes the properties from a list of names.
func (s *stripper) names(list []byte) json.RawMessage {
	return edited(list, func(element json.RawMessage) json.RawMessage {
		if name, ok := wire.Text(element); ok && slices.Contains(s.hidden, name) {
			s.removed++
			return nil
		}
		return element
	})
}

// referred returns the schema to which a reference points, without the properties. It is nil if the schema has none of them, and then
// the reference can stay. The schema itself stays as it is, since other objects may be of the same kind.
func (s *stripper) referred(reference []byte, depth int) json.RawMessage {
	pointer, _ := wire.Text(reference)
	target := within(s.root, pointer)
	if target == nil {
		return nil
	}
	before := s.removed
	s.inlined++
	if target = s.strip(target, depth+1); s.removed == before {
		return nil
	}
	return target
}

// within returns the part of a schema to which a pointer such as #/$defs/a points, or nil.
func within(schema json.RawMessage, pointer string) json.RawMessage {
	path, ok := strings.CutPrefix(pointer, "#/")
	if !ok {
		return nil
	}
	for written := range strings.SplitSeq(path, "/") {
		name, err := unescaped(written)
		if err != nil || len(schema) == 0 {
			return nil
		}
		if schema[0] != '[' {
			schema = wire.Member(schema, name)
			continue
		}
		index, err := strconv.Atoi(name)
		list := schema
		schema = nil
		_ = wire.Elements(list, func(element []byte) bool {
			if index == 0 && err == nil {
				schema = element
			}
			index--
			return true
		})
	}
	return schema
}

// escaping writes a name as it is in a JSON pointer of a URL.
var escaping = strings.NewReplacer("~", "~0", "/", "~1", "%", "%25")

// unescaped returns a name as it is in a JSON pointer of a URL.
func unescaped(written string) (string, error) {
	name, err := url.PathUnescape(written)
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(name), err
}

// edited replaces each element of an array by what f returns, and leaves it out if that is nil.
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

// withReferred adds those of the hidden properties to $defs to which the schema still refers, and changes the references. zod,
// for one, writes {"$ref": "#/properties/a"} where the schema of the property a is needed a second time. whole is the schema with the
// hidden properties.
func withReferred(schema, whole json.RawMessage, hidden []string) json.RawMessage {
	m := mover{whole: whole, hidden: hidden, names: map[string]string{}, taken: map[string]bool{}}
	for _, name := range keys(wire.Member(schema, "$defs")) {
		m.taken[name] = true
	}
	schema = m.move(schema)
	if len(m.found) == 0 {
		return schema
	}
	var added json.RawMessage
	for i := 0; i < len(m.found); i++ { // move may find more
		added = wire.WithMember(added, m.names[m.found[i]], m.move(within(whole, m.found[i])))
	}
	return wire.Set(schema, "$defs", wire.Merge(wire.Member(schema, "$defs"), added))
}

// mover changes references to hidden properties of a schema into references to $defs.
type mover struct {
	whole  json.RawMessage
	hidden []string
	found  []string          // the pointers to the properties to which there are references
	names  map[string]string // their names in $defs
	taken  map[string]bool   // all names in $defs
}

var (
	// reference matches a member "$ref" of a schema. It matches nothing within strings, as quotes are escaped there.
	reference = pattern.New(`"\$ref"\s*:\s*("(?:[^"\\]|\\.)*")`)
	// toProperty matches a pointer to a property of the arguments object, or the beginning of a pointer to something within such a
	// property. The property may also be declared in an allOf, anyOf or oneOf of the schema, since these describe the same object.
	toProperty = pattern.New(`^#(?:/(?:allOf|anyOf|oneOf)/[0-9]+)*/properties/([^/]*)`)
)

func (m *mover) move(schema json.RawMessage) json.RawMessage {
	return json.RawMessage(reference.ReplaceAllStringFunc(string(schema), func(member string) string {
		pointer, _ := wire.Text([]byte(reference.FindStringSubmatch(member)[1]))
		to := toProperty.FindStringSubmatch(pointer)
		if to == nil {
			return member
		}
		written := to[1]
		name, err := unescaped(written)
		property := strings.TrimSuffix(to[0], written) + escaping.Replace(name) // one form, for the maps
		if err != nil || !slices.Contains(m.hidden, name) || within(m.whole, property) == nil {
			return member
		}
		if m.names[property] == "" {
			moved := name
			for m.taken[moved] {
				moved += "_"
			}
			m.found, m.names[property], m.taken[moved] = append(m.found, property), moved, true
		}
		longer := strings.TrimPrefix(m.names[property], name)
		return `"$ref":` + string(wire.Encode("#/$defs/"+written+longer+pointer[len(to[0]):]))
	}))
}

func keys(object json.RawMessage) (all []string) {
	_ = wire.Fields(object, func(name string, _ []byte) bool {
		all = append(all, name)
		return true
	})
	return all
}

// Arguments returns the arguments of a call, with the values that an override fixes for this tool.
func Arguments(t *catalog.Tool, arguments json.RawMessage) json.RawMessage {
	return wire.Merge(t.Fixed, arguments)
}
