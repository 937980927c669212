// Package schemats writes JSON Schema as TypeScript for language models: this takes far fewer
// tokens. Constraints that types cannot express are written in short comments.
// The package is pure: it fetches nothing, keeps the order of keys and the literals of
// numbers, and bounds its work and output for any schema of the drafts 4 to 2020-12.
//
// A part of a schema that cannot be read becomes `unknown /* why */`; the rest is kept.
package schemats

import (
	"encoding/json"
	"strings"

	"mcpx/internal/base/wire"
)

// Options limits the text that is written for a schema.
type Options struct {
	// MaxDescription is the maximum length of a property's description, in runes; 0 means 20,000, which is also the most. A
	// longer description is cut after a word and ends with "..." and the number of missing characters.
	MaxDescription int
	// MaxResult is the maximum length of the result type in [All], in tokens; 0 means no limit. Of a
	// longer type only the top levels are written, without comments.
	MaxResult int
}

// Tool is the definition of an MCP tool. Its texts are untrusted; this package cleans them.
type Tool struct {
	Name, Description string
	// Input and Output are JSON Schemas; nil means that the tool has no such schema.
	Input, Output json.RawMessage
	// Notes are printed before the description, such as "read-only".
	Notes []string
}

// schema is one converted document.
type schema struct {
	root *def
	// lossy means that something of the schema is neither in the types nor in the comments.
	lossy bool
}

// load converts a schema. It returns nil if raw is nil. If raw cannot be read, the type is unknown, with a note that says why. The
// parameter name is the name of the root type, which is written where the schema refers to itself with the $ref "#".
func load(raw json.RawMessage, name string) *schema {
	if raw == nil {
		return nil
	}
	root := &def{hint: name}
	v, err := readJSON(raw)
	if err != nil {
		root.done = true
		root.body = unreadable(err.Error())
		return &schema{root, true}
	}
	c := &converter{root: v, defs: map[*value]*def{v: root}, order: []*def{root}}
	root.body = c.convert(v, allTypes)
	root.done = true
	for _, d := range c.order {
		breakCycle(d)
	}
	for _, d := range c.order {
		d.named = d.recursive
	}
	return &schema{root, c.lossy}
}

// Declaration returns valid TypeScript for the schemas of a tool: `type Args = …;` for the input and `type Result = …;` for the
// output. Before each of them come the named types that it needs: recursive types, and types used several times. There is no
// Result if output is nil.
func Declaration(input, output json.RawMessage, o Options) string {
	in, out := load(input, "Args"), load(output, "Result")
	if in == nil {
		in = &schema{root: &def{hint: "Args", body: unknownType}}
	}
	nameShared(in, out)
	p := &printer{o: o}
	printed := map[*def]bool{}
	for _, s := range [...]*schema{in, out} {
		if s == nil {
			continue
		}
		p.limit = len(p.b) + maxOutput
		p.over = false
		printed[s.root] = true
		p.statements(s, printed)
		p.statement(s.root.hint, s.root.body)
	}
	return strings.TrimSuffix(string(p.b), "\n")
}

// statements writes the named types that s needs, except those in printed.
func (p *printer) statements(s *schema, printed map[*def]bool) {
	for _, d := range namedIn(s.root.body, map[*typ]bool{}, nil) {
		if !printed[d] {
			printed[d] = true
			p.statement(d.name, d.body)
		}
	}
}

// statement writes `type name = …;`, with the description and notes of t in a comment before it.
func (p *printer) statement(name string, t *typ) {
	if text := sentence(p.docs(t)); text != "" {
		p.write(comment(text), "\n")
	}
	p.write("type ", name, " = ")
	p.value(t, loose, 0, "")
	p.write(";\n")
}

// Param is one parameter of a tool, for texts that show parameters by their names only.
type Param struct {
	Name     string // untrusted, not cleaned
	Optional bool
	// Inside has the properties of this parameter if it is an object and the only parameter of
	// the tool.
	Inside []Param
}

// Params returns the parameters of a tool in the order of the schema, including parameters in
// allOf, anyOf and $ref.
func Params(input json.RawMessage) []Param {
	if input == nil {
		return nil
	}
	if root, err := readJSON(input); err == nil {
		if list, ok := plainParams(root); ok && (len(list) != 1 || root.get("properties").members[0].val.isScalar()) {
			return list
		}
	}
	t := load(input, "Args").root.body
	list := params(t, 0)
	for i := 0; i < maxRefs && t.kind == tRef; i++ {
		t = t.def.body
	}
	if len(list) == 1 && t.kind == tObject && len(t.props) == 1 {
		list[0].Inside = params(t.props[0].t, 1)
	}
	return list
}

// maxRefs is how many references in a row Params follows, if each refers to the next.
const maxRefs = 20

// isScalar reports whether the keyword type of a schema names a single type other than object.
func (v *value) isScalar() bool {
	is := v.str("type")
	return is != "" && is != "object"
}

// plainParams reads the parameters of a schema without converting the schema, which is about
// three times faster. ok is false for the few schemas with keywords that may add or exclude
// properties.
func plainParams(root *value) (list []Param, ok bool) {
	props := root.get("properties")
	if !props.isObject() || root.str("type") != "object" {
		return nil, false
	}
	for _, key := range []string{"$ref", "allOf", "anyOf", "oneOf", "enum", "const"} {
		if root.get(key) != nil {
			return nil, false
		}
	}
	required := make(map[string]bool)
	if names := root.get("required"); names != nil {
		for _, name := range names.items {
			if name.kind != wire.String || props.get(name.text) == nil {
				return nil, false
			}
			required[name.text] = true
		}
	}
	for _, m := range props.members {
		if !m.val.isObject() {
			return nil, false
		}
		list = append(list, Param{Name: m.key, Optional: !required[m.key]})
	}
	return list, true
}

// params returns the properties of t as parameters. In a union, a property is required only if every object of the union requires
// it.
func params(t *typ, depth int) []Param {
	for depth < maxRefs && t.kind == tRef {
		t = t.def.body
		depth++
	}
	if depth >= maxRefs {
		return nil
	}
	var out []Param
	if t.kind == tObject {
		for _, q := range t.props {
			out = append(out, Param{Name: q.key, Optional: q.optional})
		}
	}
	if t.kind != tInter && t.kind != tUnion {
		return out
	}
	objects := 0
	at, count := map[string]int{}, map[string]int{}
	for _, m := range t.members {
		if !m.simple() {
			objects++
		}
		for _, q := range params(m, depth+1) {
			count[q.Name]++
			i, ok := at[q.Name]
			switch {
			case !ok:
				at[q.Name] = len(out)
				out = append(out, q)
			case t.kind == tUnion:
				out[i].Optional = out[i].Optional || q.Optional
			default:
				out[i].Optional = out[i].Optional && q.Optional
			}
		}
	}
	for i := range out {
		out[i].Optional = out[i].Optional || t.kind == tUnion && count[out[i].Name] < objects
	}
	return out
}
