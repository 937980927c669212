// Package schemats writes JSON Schema as TypeScript, for language models: types
// say the same as the schema in a fraction of the tokens, and what no type says
// stands in short comments. It is pure, keeps the order of keys and the literals
// of numbers, fetches nothing, and bounds its work and its text whatever the
// schema is. Drafts 4 to 2020-12 are read alike.
//
// A part that cannot be read costs only that part: it becomes
// `unknown /* why */`.
package schemats

import (
	"encoding/json"
	"strings"
)

// Options controls how much of a schema is written.
type Options struct {
	// Descriptions writes descriptions as comments.
	Descriptions bool
	// Constraints writes defaults, formats, ranges, patterns, int-ness and item
	// counts as short comments. What no type can express is written without it too.
	Constraints bool
	// MaxDescription cuts each description of a property to this many runes, on a
	// word with "..."; 0 = no cut.
	MaxDescription int
	// MaxResult bounds what [All] writes of the result, in tokens as it is
	// given an estimate of; of a longer one only the top levels are written, types
	// alone. The result itself shows the rest. 0 = no bound.
	MaxResult int
}

// Tool is what a signature is made of.
type Tool struct {
	// Name is the tool's name; one that is no identifier is quoted.
	Name string
	// Description is foreign text; it is cleaned here.
	Description string
	// Input and Output are JSON Schemas; nil = none.
	Input, Output json.RawMessage
	// Notes are printed before the description, such as "read-only".
	Notes []string
}

// schema is one converted document.
type schema struct {
	*converter
	root *def
}

// load converts a schema; nil gives nil.
func load(raw json.RawMessage, name string) *schema {
	if raw == nil {
		return nil
	}
	c, root := convertSchema(raw, name)
	return &schema{c, root}
}

// Declaration is a piece of valid TypeScript: the named types that are needed
// (recursive ones and those used several times; unreachable ones are left out),
// then `type Args = …;` for the input and, where output is not nil,
// `type Result = …;`.
func Declaration(input, output json.RawMessage, o Options) string {
	in, out := load(input, "Args"), load(output, "Result")
	if in == nil {
		in = &schema{root: &def{hint: "Args", body: unknownType}}
	}
	names := newSharing()
	names.add(in, true)
	names.add(out, false)
	names.name()
	p := &printer{o: o, limit: maxOutput}
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

// statement writes `type name = …;` with the docs of t before it.
func (p *printer) statement(name string, t *typ) {
	if text := sentence(p.docs(t)); text != "" {
		p.write(comment(text), "\n")
	}
	p.write("type ", name, " = ")
	p.value(t, loose, 0, "")
	p.write(";\n")
}

// Param is one parameter of a tool, for a catalogue line. Inside are the properties of an
// object that is the only parameter, as it says nothing by itself; otherwise nil.
type Param struct {
	Name     string
	Optional bool
	Inside   []Param
}

// Params lists the parameters of a tool in schema order, those of allOf, anyOf
// and $ref included. A name is foreign text.
func Params(input json.RawMessage) []Param {
	if input == nil {
		return nil
	}
	if root, err := readJSON(input); err == nil {
		if list, ok := plainParams(root); ok && (len(list) != 1 || root.get("properties").members[0].val.isScalar()) {
			return list
		}
	}
	_, root := convertSchema(input, "Args")
	list := params(root.body, 0)
	t := root.body
	for i := 0; i < 20 && t.kind == tRef; i++ {
		t = t.def.body
	}
	if len(list) == 1 && t.kind == tObject && len(t.props) == 1 {
		list[0].Inside = params(t.props[0].t, 1)
	}
	return list
}

// isScalar reports whether a schema says that it is no object.
func (v *value) isScalar() bool {
	is := v.str("type")
	return is != "" && is != "object"
}

// plainParams reads the parameters of a schema that is an object with
// properties and nothing that adds to them, as nearly all are: the catalogue of
// thousands of tools is made of such.
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
			if name.kind != jString || props.get(name.text) == nil {
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

func params(t *typ, depth int) []Param {
	for depth < 20 && t.kind == tRef {
		t = t.def.body
		depth++
	}
	if depth >= 20 {
		return nil
	}
	var out []Param
	at := map[string]int{}
	count := map[string]int{}
	add := func(q Param, alternative bool) {
		count[q.Name]++
		i, ok := at[q.Name]
		switch {
		case !ok:
			at[q.Name] = len(out)
			out = append(out, q)
		case alternative:
			out[i].Optional = out[i].Optional || q.Optional
		default:
			out[i].Optional = out[i].Optional && q.Optional
		}
	}
	switch t.kind {
	case tObject:
		for _, q := range t.props {
			add(Param{Name: q.key, Optional: q.optional}, false)
		}
	case tInter, tUnion:
		for _, m := range t.members {
			for _, q := range params(m, depth+1) {
				add(q, t.kind == tUnion)
			}
		}
		if t.kind == tUnion {
			objects := 0
			for _, m := range t.members {
				if !m.simple() {
					objects++
				}
			}
			for i := range out {
				out[i].Optional = out[i].Optional || count[out[i].Name] < objects
			}
		}
	}
	return out
}
