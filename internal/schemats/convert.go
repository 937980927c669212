package schemats

import (
	"slices"
	"strings"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
)

// maxDepth and maxSteps bound one conversion. Of 1,678 real tools, the largest is nested 9 levels deep and has about 2,000
// parts.
const (
	maxDepth = 80
	maxSteps = 60_000
	// maxMembers is how many schemas in anyOf, oneOf or allOf, or values in enum, are read.
	maxMembers = 4_000
	// maxQuoted is how many bytes of the JSON of a keyword are quoted in a comment.
	maxQuoted = 240
)

// converter turns the JSON of one schema document into types. The target of a $ref is converted only once, into one def for all
// references to it.
type converter struct {
	root  *value
	defs  map[*value]*def
	order []*def
	depth int
	steps int
	lossy bool // a part of the schema is neither in the types nor in the comments
}

// spend counts n+1 steps of work. It returns false if the conversion has now taken maxSteps steps or more, and must stop.
func (c *converter) spend(n int) bool {
	c.steps += n + 1
	return c.steps < maxSteps
}

func (c *converter) tooLarge() *typ {
	c.lossy = true
	return unreadable("cut: schema too large")
}

func (c *converter) tooDeep() *typ {
	c.lossy = true
	return unreadable("cut: nested too deeply")
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

// ownTypes returns the names under the keyword "type" of a schema. The bool is true if the schema has this keyword, as a string or
// an array.
func ownTypes(v *value) ([]string, bool) {
	t := v.get("type")
	if t == nil {
		return nil, false
	}
	if t.kind == wire.String {
		return []string{t.text}, true
	}
	var names []string
	for _, item := range t.items {
		if item.kind == wire.String {
			names = append(names, item.text)
		}
	}
	return names, t.kind == wire.Array
}

var keywordTypes = map[string]types{
	"properties": isObject, "required": isObject, "additionalProperties": isObject, "patternProperties": isObject,
	"propertyNames": isObject, "minProperties": isObject, "maxProperties": isObject,
	"items": isArray, "prefixItems": isArray, "minItems": isArray, "maxItems": isArray, "uniqueItems": isArray, "contains": isArray,
	"minLength": isString, "maxLength": isString, "pattern": isString, "format": isString,
	"contentEncoding": isString, "contentMediaType": isString,
	"minimum": isNumber, "maximum": isNumber, "exclusiveMinimum": isNumber, "exclusiveMaximum": isNumber, "multipleOf": isNumber,
}

// impliedTypes returns the JSON types for which a schema has keywords; properties, for example, implies object.
func impliedTypes(v *value) types {
	var m types
	for i := range v.members {
		m |= keywordTypes[v.members[i].key]
	}
	return m
}

// convert makes the TypeScript type of one schema. The parameter mask is the set of JSON types that the surrounding schemas allow
// for the same value. For example, beside `type: object`, a member of anyOf that has only `required` must be an object.
func (c *converter) convert(v *value, mask types) *typ {
	switch {
	case v == nil || v.isTrue():
		return unknownType
	case v.isFalse():
		return neverType
	case !v.isObject():
		return unreadable("invalid schema")
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
	return t.withDocs(description(v), c.otherNotes(v, t))
}

// base returns the type that results from the keyword "type" and from the other keywords for this type. If "type" is missing, the
// mask or the other keywords decide. base also returns the set of JSON types that remains allowed: the mask for the schemas in
// anyOf, oneOf and allOf (see convert).
func (c *converter) base(v *value, mask types) (*typ, types) {
	names, own := ownTypes(v)
	implied := impliedTypes(v)
	if !own {
		switch {
		case mask != allTypes:
			if implied&mask == 0 {
				return unknownType, mask
			}
			for _, name := range [...]string{"string", "number", "boolean", "null", "object", "array"} {
				if typeNames[name]&mask != 0 {
					names = append(names, name)
				}
			}
		case implied&isObject != 0:
			names = []string{"object"}
		case implied&isArray != 0:
			names = []string{"array"}
		default:
			return unknownType.withDocs("", addNotes(stringNotes(v), numberNotes(v, false))), mask
		}
	}
	var out []*typ
	var set types
	for _, name := range names {
		bit, known := typeNames[name]
		if !known {
			// Real schemas have "any" and "file" here, which JSON Schema does not define.
			out = append(out, unreadable("type: "+sanitize.Line(name, 0)))
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

// reference returns the type to which $ref refers. Without $ref the type is unknown; if the target is not found, a note quotes
// $ref.
func (c *converter) reference(v *value) *typ {
	r := v.get("$ref")
	if r == nil {
		return unknownType
	}
	if r.kind == wire.String {
		if target, hint := c.resolve(r.text); target != nil {
			t := c.refTo(target, hint)
			if description(v) != "" && withinSchema(r.text) {
				// zod refers to the place where a type occurs first, such as another parameter. The description of that parameter
				// does not apply to this one.
				t = t.settled().withoutDescription()
			}
			return t
		}
		// No target was found, so a comment quotes the $ref. If the $ref does not begin with "#/", the schema may still have the
		// target, under an $anchor or $id. The comment does not show this target.
		c.lossy = c.lossy || !strings.HasPrefix(r.text, "#/")
	}
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

// values returns the type for enum and const, or unknown if a schema has neither.
func (c *converter) values(v *value) *typ {
	t := unknownType
	if e := v.get("enum"); e.isArray() {
		items, notes := c.bounded(e, "values")
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

// bounded returns the first maxMembers items of a list. If there are more, notes says so; the parameter what is the word for the
// items there, such as "values".
func (c *converter) bounded(list *value, what string) (items []*value, notes []note) {
	if len(list.items) <= maxMembers {
		return list.items, nil
	}
	c.lossy = true
	return list.items[:maxMembers], []note{{"cut: more " + what, true}}
}

// literal returns the type whose only value is v.
func (c *converter) literal(v *value, depth int) *typ {
	if depth > 8 || !c.spend(1) {
		return c.tooDeep()
	}
	switch v.kind {
	case wire.Null:
		return prim("null")
	case wire.String:
		return &typ{kind: tLit, text: quoted(v.text)}
	case wire.Array:
		t := &typ{kind: tTuple, required: len(v.items)}
		for _, item := range v.items {
			t.members = append(t.members, c.literal(item, depth+1))
		}
		return t
	case wire.Object:
		t := &typ{kind: tObject, closed: true}
		for _, m := range v.members {
			t.props = append(t.props, prop{key: m.key, t: c.literal(m.val, depth+1)})
		}
		return t
	}
	return &typ{kind: tLit, text: v.text}
}

// combine returns the union of the schemas under keyword, which is anyOf or oneOf. If v has no such schemas, combine returns the
// type unknown.
func (c *converter) combine(v *value, keyword string, mask types) *typ {
	list := v.get(keyword)
	if !list.isArray() || len(list.items) == 0 {
		return unknownType
	}
	items, notes := c.bounded(list, "variants")
	out := make([]*typ, 0, len(items))
	onlyRequired := true
	for _, item := range items {
		out = append(out, c.convert(item, mask))
		onlyRequired = onlyRequired && item.get("required") != nil && item.get("properties") == nil
	}
	if keyword == "oneOf" && onlyRequired && len(items) > 1 {
		notes = append(notes, note{"exactly one variant", true})
	}
	// Pydantic gives each variant a default for the property that tells the variants apart, but it refuses a value that lacks this
	// property.
	tag := v.get("discriminator").str("propertyName")
	if tag != "" && slices.ContainsFunc(out, func(t *typ) bool { return t.mayLack(tag) }) {
		notes = append(notes, note{"needs " + sanitize.Line(tag, maxTag), true})
	}
	return union(out).withDocs("", notes)
}

// maxTag is the maximum length of the name of a property in a note, in runes.
const maxTag = 60

// mayLack reports whether t is an object with the property key, and this property is optional.
func (t *typ) mayLack(key string) bool {
	if t.kind == tRef && t.def.body != nil {
		t = t.def.body
	}
	return slices.ContainsFunc(t.props, func(p prop) bool { return p.key == key && p.optional })
}

func (c *converter) intersectAll(t *typ, list *value, mask types) *typ {
	if !list.isArray() {
		return t
	}
	items, notes := c.bounded(list, "parts of allOf")
	for _, item := range items {
		t = c.intersect(t, c.convert(item, mask))
	}
	return t.withDocs("", notes)
}

// breakCycle removes references from d to itself that are not within an object or array: `type A = A | string` is an error in
// TypeScript, and has no meaning in JSON Schema.
func breakCycle(d *def) {
	if d.visit != unvisited {
		return
	}
	d.visit = visiting
	d.body = unguarded(d.body)
	if d.body == nil {
		d.body = unreadable("circular $ref")
	}
	d.visit = visited
}

// unguarded returns t without the references that breakCycle removes, which are the references to definitions that breakCycle is
// visiting. If t has nothing else, unguarded returns nil.
func unguarded(t *typ) *typ {
	switch t.kind {
	case tRef:
		if t.def.visit == visiting {
			return nil
		}
		breakCycle(t.def)
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
