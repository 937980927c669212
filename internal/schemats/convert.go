package schemats

import (
	"encoding/json"
	"strings"

	"mcpx/internal/base/sanitize"
)

// Limits of one conversion. A real schema stays far below: the largest of 1,678
// real tools nests 9 levels and has about 2,000 parts.
const (
	maxDepth = 80
	maxSteps = 60_000
	// maxMembers bounds anyOf, oneOf and allOf lists, and enum values.
	maxMembers = 4_000
	// maxSaid bounds the JSON of a keyword that is quoted in a comment.
	maxSaid = 240
)

// converter turns the JSON of one schema document into types. Every part is
// converted once: what several $ref share is a def.
type converter struct {
	root  *value
	defs  map[*value]*def
	order []*def
	depth int
	steps int
	// lossy: a keyword that no type expresses was too long to be quoted whole.
	lossy bool
}

// convertSchema reads and converts a document. rootName is what "#" refers to.
// The def is the root itself; its body is never nil.
func convertSchema(raw json.RawMessage, rootName string) (*converter, *def) {
	c := &converter{defs: map[*value]*def{}}
	root := &def{hint: rootName}
	v, err := readJSON(raw)
	if err != nil {
		c.lossy = true
		root.done = true
		root.body = unknownType.withDocs("", []note{{err.Error(), true}})
		return c, root
	}
	c.root = v
	c.defs[v] = root
	c.order = append(c.order, root)
	root.body = c.convert(v, allTypes)
	root.done = true
	breakCycles(c.order)
	for _, d := range c.order {
		d.named = d.recursive
	}
	return c, root
}

// spend counts work; false when the schema is used up.
func (c *converter) spend(n int) bool {
	c.steps += n + 1
	return c.steps < maxSteps
}

func (c *converter) tooLarge() *typ {
	c.lossy = true
	return unknownType.withDocs("", []note{{"cut: schema too large", true}})
}

func (c *converter) tooDeep() *typ {
	c.lossy = true
	return unknownType.withDocs("", []note{{"cut: nested too deeply", true}})
}

// types is a set of JSON types.
type types uint8

const (
	isString types = 1 << iota
	isNumber
	isBoolean
	isNull
	isObject
	isArray
	allTypes = isString | isNumber | isBoolean | isNull | isObject | isArray
)

var typeNames = map[string]types{
	"string": isString, "number": isNumber, "integer": isNumber, "boolean": isBoolean,
	"null": isNull, "object": isObject, "array": isArray,
}

// ownTypes reads the type keyword: the types in their order, and whether there is one.
func ownTypes(v *value) ([]string, bool) {
	t := v.get("type")
	if t == nil {
		return nil, false
	}
	if t.kind == jString {
		return []string{t.text}, true
	}
	var names []string
	for _, item := range t.items {
		if item.kind == jString {
			names = append(names, item.text)
		}
	}
	return names, t.kind == jArray
}

var keywordTypes = map[string]types{
	"properties": isObject, "required": isObject, "additionalProperties": isObject, "patternProperties": isObject,
	"propertyNames": isObject, "minProperties": isObject, "maxProperties": isObject,
	"items": isArray, "prefixItems": isArray, "minItems": isArray, "maxItems": isArray, "uniqueItems": isArray, "contains": isArray,
	"minLength": isString, "maxLength": isString, "pattern": isString, "format": isString,
	"contentEncoding": isString, "contentMediaType": isString,
	"minimum": isNumber, "maximum": isNumber, "exclusiveMinimum": isNumber, "exclusiveMaximum": isNumber, "multipleOf": isNumber,
}

// impliedTypes are the types that a schema's keywords speak of.
func impliedTypes(v *value) types {
	var m types
	for i := range v.members {
		m |= keywordTypes[v.members[i].key]
	}
	return m
}

// convert makes the type of one schema. mask is the set of types that the
// schemas around it leave: a member of anyOf beside `type: object` that only says
// `required` is about objects.
func (c *converter) convert(v *value, mask types) *typ {
	switch {
	case v == nil || v.isTrue():
		return unknownType
	case v.isFalse():
		return neverType
	case v.kind != jObject:
		return unknownType.withDocs("", []note{{"invalid schema", true}})
	case len(v.members) == 0:
		return unknownType
	}
	if !c.spend(1) {
		return c.tooLarge()
	}
	if c.depth >= maxDepth {
		return c.tooDeep()
	}
	c.depth++
	defer func() { c.depth-- }()

	t, mask := c.base(v, mask)
	t = c.intersect(t, c.reference(v))
	t = c.intersect(t, c.values(v))
	t = c.intersect(t, c.combine(v, "anyOf", mask))
	t = c.intersect(t, c.combine(v, "oneOf", mask))
	t = c.intersectAll(t, v.get("allOf"), mask)
	if v.get("nullable").isTrue() && t.kind != tUnknown && t.kind != tNever {
		t = union([]*typ{t, prim("null")})
	}
	return t.withDocs(description(v), c.said(v, t))
}

// base is what the type keyword and the keywords of that type say, and the mask
// for the schemas inside.
func (c *converter) base(v *value, mask types) (*typ, types) {
	names, own := ownTypes(v)
	implied := impliedTypes(v)
	if !own {
		switch {
		case mask != allTypes:
			if implied&mask == 0 {
				return unknownType, mask
			}
			names = namesOf(mask)
		case implied&isObject != 0:
			names = []string{"object"}
		case implied&isArray != 0:
			names = []string{"array"}
		default:
			return unknownType.withDocs("", c.looseNotes(v)), mask
		}
	}
	var out []*typ
	var set types
	for _, name := range names {
		bit, known := typeNames[name]
		if !known {
			// "any" and "file" occur; JSON Schema gives them no meaning.
			out = append(out, unknownType.withDocs("", []note{{"type: " + sanitize.Line(name, 0), true}}))
			set = allTypes
			continue
		}
		if bit&mask == 0 {
			continue
		}
		set |= bit
		out = append(out, c.ofType(v, name))
	}
	if len(names) == 0 {
		return unknownType, mask
	}
	return union(out), set & mask
}

func namesOf(mask types) []string {
	var names []string
	for _, name := range [...]string{"string", "number", "boolean", "null", "object", "array"} {
		if typeNames[name]&mask != 0 {
			names = append(names, name)
		}
	}
	return names
}

func (c *converter) ofType(v *value, name string) *typ {
	switch name {
	case "object":
		return c.object(v)
	case "array":
		return c.array(v)
	case "string":
		return prim("string", stringNotes(v)...)
	case "integer", "number":
		return prim("number", numberNotes(v, name == "integer")...)
	}
	return prim(name)
}

// reference is the type that $ref points to.
func (c *converter) reference(v *value) *typ {
	r := v.get("$ref")
	if r == nil {
		return unknownType
	}
	if r.kind == jString {
		if target, hint := c.resolve(r.text); target != nil {
			return c.refTo(target, hint)
		}
	}
	// The quotation does not have the part that an $anchor or $id may name.
	c.lossy = c.lossy || r.kind == jString && !strings.HasPrefix(r.text, "#/")
	return unknownType.withDocs("", []note{c.quote("$ref", r)})
}

func (c *converter) refTo(target *value, hint string) *typ {
	d := c.defs[target]
	if d == nil {
		d = &def{hint: hint}
		c.defs[target] = d
		if c.depth >= maxDepth {
			delete(c.defs, target)
			return c.tooDeep()
		}
		c.order = append(c.order, d)
		d.body = c.convert(target, allTypes)
		d.done = true
	} else if !d.done {
		d.recursive = true
	}
	if d.done && (d.body.kind == tUnknown || d.body.kind == tNever || d.body.simple()) {
		return d.body
	}
	return &typ{kind: tRef, def: d}
}

// values is the type of enum and const.
func (c *converter) values(v *value) *typ {
	t := unknownType
	if e := v.get("enum"); e.isArray() {
		items := e.items
		var notes []note
		if len(items) > maxMembers {
			c.lossy = true
			items, notes = items[:maxMembers], []note{{"cut: more values", true}}
		}
		out := make([]*typ, 0, len(items))
		for _, item := range items {
			out = append(out, c.literal(item, 0))
		}
		t = union(out).withDocs("", notes)
	}
	if k := v.get("const"); k != nil {
		t = c.intersect(t, c.literal(k, 0))
	}
	return t
}

// literal is the type that has exactly one value.
func (c *converter) literal(v *value, depth int) *typ {
	if depth > 8 || !c.spend(1) {
		return c.tooDeep()
	}
	switch v.kind {
	case jNull:
		return prim("null")
	case jString:
		return &typ{kind: tLit, text: quoted(v.text)}
	case jArray:
		t := &typ{kind: tTuple, required: len(v.items)}
		for _, item := range v.items {
			t.members = append(t.members, c.literal(item, depth+1))
		}
		return t
	case jObject:
		t := &typ{kind: tObject, closed: true}
		for _, m := range v.members {
			t.props = append(t.props, prop{key: m.key, t: c.literal(m.val, depth+1)})
		}
		return t
	}
	return &typ{kind: tLit, text: v.text}
}

// combine is the union of anyOf or oneOf.
func (c *converter) combine(v *value, keyword string, mask types) *typ {
	list := v.get(keyword)
	if !list.isArray() || len(list.items) == 0 {
		return unknownType
	}
	items := list.items
	var notes []note
	if len(items) > maxMembers {
		c.lossy = true
		items, notes = items[:maxMembers], []note{{"cut: more variants", true}}
	}
	out := make([]*typ, 0, len(items))
	onlyRequired := true
	for _, item := range items {
		out = append(out, c.convert(item, mask))
		onlyRequired = onlyRequired && item.get("required") != nil && item.get("properties") == nil
	}
	if keyword == "oneOf" && onlyRequired && len(items) > 1 {
		notes = append(notes, note{"exactly one variant", true})
	}
	return union(out).withDocs("", notes)
}

func (c *converter) intersectAll(t *typ, list *value, mask types) *typ {
	if !list.isArray() {
		return t
	}
	for i, item := range list.items {
		if i >= maxMembers {
			c.lossy = true
			return t.withDocs("", []note{{"cut: more parts of allOf", true}})
		}
		t = c.intersect(t, c.convert(item, mask))
	}
	return t
}

// breakCycles removes references that come back to their own definition without
// an object or array between: `type A = A | string` is no TypeScript, and the
// schema says nothing there either.
func breakCycles(order []*def) {
	for _, d := range order {
		visitDef(d)
	}
}

func visitDef(d *def) {
	if d.state != 0 {
		return
	}
	d.state = 1
	d.body = unguarded(d.body)
	if d.body == nil {
		d.body = unknownType.withDocs("", []note{{"circular $ref", true}})
	}
	d.state = 2
}

// unguarded gives t without references to definitions that are being visited;
// nil when nothing is left.
func unguarded(t *typ) *typ {
	switch t.kind {
	case tRef:
		if t.def.state == 1 {
			return nil
		}
		visitDef(t.def)
	case tUnion, tInter:
		var members []*typ
		for _, m := range t.members {
			if m = unguarded(m); m != nil {
				members = append(members, m)
			}
		}
		if len(members) == len(t.members) {
			return t
		}
		if len(members) == 0 {
			return nil
		}
		n := *t
		n.members = members
		n.notes = addNotes(n.notes, []note{{"circular $ref", true}})
		if len(members) == 1 {
			return members[0].withDocs(n.desc, n.notes)
		}
		return &n
	}
	return t
}
