package schemats

import (
	"regexp"
	"strings"

	"mcpx/internal/plain"
)

// object is the type of a schema as far as it speaks of objects.
func (c *converter) object(v *value) *typ {
	t := &typ{kind: tObject}
	add := v.get("additionalProperties")
	t.closed = add.isFalse() || add == nil && v.get("unevaluatedProperties").isFalse() && !applies(v)
	var rest *typ
	if add != nil && !add.isFalse() {
		rest = c.convert(add, allTypes)
		t.closed = rest.kind == tNever
	}
	required, names := requiredNames(v)
	if props := v.get("properties"); props.isObject() {
		for _, m := range props.members {
			if !c.spend(1) {
				t.notes = append(t.notes, note{"cut: more properties", true})
				c.lossy = true
				break
			}
			t.props = append(t.props, prop{key: m.key, t: plainItems(c.convert(m.val, allTypes), m.key), optional: !required[m.key]})
			delete(required, m.key)
		}
	}
	pats := c.patterns(v)
	for _, name := range names {
		if required[name] && c.spend(1) {
			delete(required, name)
			t.props = append(t.props, prop{key: name, t: c.unlisted(name, t.closed, rest, pats)})
		}
	}
	c.propertyNames(v, t)
	c.indexes(t, rest, pats)
	t.notes = addNotes(t.notes, objectNotes(v))
	return t
}

// plainItems drops the description of array items that only says whose items
// they are ("tags parameter"), as generators write it.
func plainItems(t *typ, key string) *typ {
	if t.kind != tArray || t.elem.desc == "" {
		return t
	}
	d := t.elem.desc
	if d != key && d != key+" parameter" && d != key+" item" && d != t.desc {
		return t
	}
	n, e := *t, *t.elem
	e.desc = ""
	n.elem = &e
	return &n
}

// applies reports whether other schemas of v list properties too: then what is
// not evaluated is not what this schema alone does not list.
func applies(v *value) bool {
	for _, k := range [...]string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"} {
		if v.get(k) != nil {
			return true
		}
	}
	return false
}

// requiredNames reads required as a set and in its order.
func requiredNames(v *value) (map[string]bool, []string) {
	r := v.get("required")
	if !r.isArray() {
		return nil, nil
	}
	set := make(map[string]bool, len(r.items))
	var names []string
	for _, item := range r.items {
		if item.kind == jString && !set[item.text] {
			set[item.text] = true
			names = append(names, item.text)
		}
	}
	return set, names
}

// unlisted is the type of a required key that properties does not list.
func (c *converter) unlisted(name string, closed bool, rest *typ, pats []pattern) *typ {
	t, matched := unknownType, false
	for _, p := range pats {
		if p.covers(name) {
			t, matched = c.intersect(t, p.t), true
		}
	}
	switch {
	case matched:
		return t
	case closed && len(pats) == 0:
		return neverType
	case rest != nil && len(pats) == 0:
		return rest
	}
	return unknownType
}

// pattern is one member of patternProperties.
type pattern struct {
	source string
	// key is the index signature that says the same: "string", a template
	// literal, or "" where there is none.
	key            string
	prefix, suffix string
	t              *typ
}

var literalPattern = regexp.MustCompile(`^(\^?)((?:[A-Za-z0-9_:@/ -]|\\[-./_\\$])*)(\.\*)?(\$?)$`)

func newPattern(source string, t *typ) pattern {
	p := pattern{source: source, t: t}
	m := literalPattern.FindStringSubmatch(source)
	if m == nil {
		return p
	}
	start, text, any, end := m[1] != "", unescapePattern(m[2]), m[3] != "", m[4] != ""
	tmpl := strings.NewReplacer("`", "\\`", `\`, `\\`, "${", "\\${").Replace(text)
	switch {
	case text == "" && (any || !start && !end):
		p.key = "string"
	case text == "" || start && end && !any || any && !end && !start:
	case start:
		p.prefix, p.key = text, "`"+tmpl+"${string}`"
	case end && !any:
		p.suffix, p.key = text, "`${string}"+tmpl+"`"
	}
	return p
}

func unescapePattern(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// covers reports whether a key surely matches.
func (p pattern) covers(key string) bool {
	return p.key != "" && strings.HasPrefix(key, p.prefix) && strings.HasSuffix(key, p.suffix)
}

func (c *converter) patterns(v *value) []pattern {
	pp := v.get("patternProperties")
	if !pp.isObject() {
		return nil
	}
	var out []pattern
	for _, m := range pp.members {
		if len(out) == 100 || !c.spend(1) {
			c.lossy = true
			break
		}
		out = append(out, newPattern(m.key, c.convert(m.val, allTypes)))
	}
	return out
}

// propertyNames: a set of names says which keys there are, a plain string says
// nothing, and all else is quoted.
func (c *converter) propertyNames(v *value, t *typ) {
	names := v.get("propertyNames")
	if names == nil || names.isTrue() || names.isObject() && len(names.members) == 0 {
		return
	}
	if names.isObject() && len(names.members) == 1 && names.str("type") == "string" {
		return
	}
	if p := names.str("pattern"); p != "" && (len(names.members) == 1 || len(names.members) == 2 && names.str("type") == "string") {
		t.notes = append(t.notes, note{"keys match " + plain.Line(p, 0), true})
		return
	}
	if keys := c.values(names); len(t.props) == 0 && keys.kind != tUnknown && allSimple(membersOf(keys)) {
		t.keys = keys
		return
	}
	t.notes = append(t.notes, c.quote("keys", names))
}

// indexes adds the index signatures for additional and pattern properties.
func (c *converter) indexes(t *typ, rest *typ, pats []pattern) {
	if len(pats) == 0 {
		if rest != nil && !t.closed {
			t.indexes = []index{restIndex(rest, t.props)}
		}
		return
	}
	exact := rest == nil || rest.kind == tUnknown
	for i := range t.props {
		for _, p := range pats {
			if p.covers(t.props[i].key) {
				t.props[i].t = c.intersect(t.props[i].t, p.t)
			}
		}
	}
	for _, p := range pats {
		exact = exact && p.key != "" && (p.key != "string" || len(pats) == 1)
	}
	switch {
	case exact:
		for _, p := range pats {
			c.addPattern(t, p)
		}
		if rest != nil && pats[0].key != "string" {
			t.indexes = append(t.indexes, index{key: "string", t: unknownType})
		}
		if len(pats) > 0 && t.closed {
			t.allowed = pats
		}
	case len(pats) == 1 && t.closed && len(t.props) == 0:
		t.indexes = []index{{key: "string", t: pats[0].t, keys: "keys match " + plain.Line(pats[0].source, 0)}}
	default:
		x := index{key: "string", t: unknownType}
		for _, p := range pats {
			x.rules = append(x.rules, keyRule{"keys matching " + plain.Line(p.source, 0), p.t})
		}
		if rest != nil && rest.kind != tUnknown {
			x.rules = append(x.rules, keyRule{"other keys", rest})
		} else if t.closed {
			x.keys = "no other keys"
		}
		c.lossy = c.lossy || len(x.rules) > maxRules
		t.indexes = []index{x}
		t.open()
	}
}

// addPattern adds the signature of one pattern. Two patterns with one signature
// bind together: TypeScript takes each signature once.
func (c *converter) addPattern(t *typ, p pattern) {
	x := index{key: p.key, t: forProps(p, t.props)}
	for i := range t.indexes {
		if t.indexes[i].key == x.key {
			t.indexes[i].t = c.intersect(t.indexes[i].t, x.t)
			return
		}
	}
	t.indexes = append(t.indexes, x)
}

// forProps is the type of a template index, wide enough for the optional
// properties it covers.
func forProps(p pattern, props []prop) *typ {
	for _, q := range props {
		if q.optional && p.covers(q.key) {
			return union([]*typ{p.t, undefinedType})
		}
	}
	return p.t
}

// restIndex is the signature for additional properties. TypeScript wants every
// listed property to fit the signature: where they do not, it is unknown and the
// true type is said in a comment.
func restIndex(rest *typ, props []prop) index {
	if rest.kind == tUnknown {
		return index{key: "string", t: rest}
	}
	optional := false
	for _, p := range props {
		if !within(p.t, rest) {
			return index{key: "string", t: unknownType, rest: rest, rules: []keyRule{{"other keys", rest}}}
		}
		optional = optional || p.optional
	}
	if optional {
		return index{key: "string", t: union([]*typ{rest, undefinedType}), rest: rest}
	}
	return index{key: "string", t: rest}
}

// within reports whether a is surely assignable to b.
func within(a, b *typ) bool {
	if a == b || b.kind == tUnknown || a.kind == tNever {
		return true
	}
	keys := map[string]bool{}
	for _, m := range membersOf(b) {
		keys[m.key()] = true
	}
	for _, m := range membersOf(a) {
		k := m.key()
		if k == "" || !keys[k] && !(m.kind == tLit && keys[literalOf(m.text)]) {
			return false
		}
	}
	return true
}

// array is an array, or a tuple where single elements have schemas of their own
// (prefixItems, or a list in items before 2020-12).
func (c *converter) array(v *value) *typ {
	prefix, rest := v.get("prefixItems"), v.get("items")
	if rest.isArray() {
		prefix, rest = rest, v.get("additionalItems")
	}
	if rest == nil && v.get("unevaluatedItems").isFalse() && prefix.isArray() {
		rest = v.get("unevaluatedItems")
	}
	if !prefix.isArray() || len(prefix.items) == 0 {
		t := &typ{kind: tArray, elem: c.convert(rest, allTypes), notes: arrayNotes(v, 0)}
		if t.elem.kind == tNever {
			return &typ{kind: tTuple}
		}
		return t
	}
	return c.tuple(v, prefix.items, rest)
}

func (c *converter) tuple(v *value, items []*value, rest *value) *typ {
	t := &typ{kind: tTuple, elem: c.convert(rest, allTypes)}
	least, most := v.count("minItems"), v.count("maxItems")
	t.lax = least < 0
	if t.elem.kind == tNever {
		t.elem = nil
	}
	if most >= 0 && most <= len(items) {
		items, t.elem = items[:most], nil
	}
	for _, item := range items {
		t.members = append(t.members, c.convert(item, allTypes))
	}
	t.required = min(max(least, 0), len(items))
	for i, m := range t.members {
		if m.kind == tNever {
			// An element that cannot be: the tuple ends before it.
			if i < t.required {
				return neverType
			}
			t.members, t.elem = t.members[:i], nil
			break
		}
	}
	if t.elem == nil && least > len(t.members) {
		return neverType
	}
	t.notes = arrayNotes(v, len(t.members))
	return t
}
