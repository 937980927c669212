package schemats

import (
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
)

// object returns the type that the keywords for objects in v describe.
func (c *converter) object(v *value) *typ {
	t := &typ{kind: tObject}
	add := v.get("additionalProperties")
	if v.get("patternProperties") != nil {
		add = nil // additionalProperties is then only for keys that no pattern matches; otherNotes quotes both keywords
	}
	t.closed = add.isFalse()
	var rest *typ
	if add != nil && !t.closed {
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
	for _, name := range names {
		if required[name] && c.spend(1) {
			delete(required, name)
			t.props = append(t.props, prop{key: name, t: unlisted(t.closed, rest)})
		}
	}
	c.propertyNames(v, t)
	switch {
	case rest == nil || t.closed:
	case rest.kind == tUnknown || len(t.props) == 0:
		t.rest = rest
	default:
		t.rest = unknownType
		t.notes = append(t.notes, c.quote("additionalProperties", add))
	}
	t.notes = addNotes(t.notes, objectNotes(v))
	return t
}

// plainItems returns t. But if t is an array and the description of its items says nothing new, plainItems leaves that description
// out. key is the name of the property with the type t. A description says nothing new if it is the same as the description of the
// array, or if it is only key, or key with the word "parameter" or "item" after it. Generators of schemas write such descriptions,
// for example "tags parameter".
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

// requiredNames returns the names of the required properties, as a set and in the order of the
// schema.
func requiredNames(v *value) (map[string]bool, []string) {
	r := v.get("required")
	if !r.isArray() {
		return nil, nil
	}
	set := make(map[string]bool, len(r.items))
	var names []string
	for _, item := range r.items {
		if item.kind == wire.String && !set[item.text] {
			set[item.text] = true
			names = append(names, item.text)
		}
	}
	return set, names
}

// unlisted returns the type of a key that is required but not listed under properties. closed means that additionalProperties is
// false. additional is the type of additionalProperties, or nil.
func unlisted(closed bool, additional *typ) *typ {
	switch {
	case closed:
		return neverType
	case additional != nil:
		return additional
	}
	return unknownType
}

// propertyNames reads the keyword propertyNames into t. An enum sets t.keys, and a pattern
// becomes a note. `type: string` is ignored, since all keys are strings. Anything else is quoted
// in a note.
func (c *converter) propertyNames(v *value, t *typ) {
	names := v.get("propertyNames")
	if names == nil || names.isTrue() {
		return
	}
	others := len(names.members) // the number of keywords, without type: string
	if names.str("type") == "string" {
		others--
	}
	pattern := names.str("pattern")
	keys := c.values(names)
	switch {
	case names.isObject() && others == 0:
	case pattern != "" && others == 1:
		t.notes = append(t.notes, note{"keys match " + sanitize.Line(pattern, 0), true})
	case len(t.props) == 0 && keys.kind != tUnknown && allSimple(membersOf(keys)):
		t.keys = keys
	default:
		t.notes = append(t.notes, c.quote("keys", names))
	}
}

// array returns an array type, or a tuple type if single elements have schemas of their own. These
// are in prefixItems, or before the draft 2020-12 in a list in items.
func (c *converter) array(v *value) *typ {
	prefix, rest := v.get("prefixItems"), v.get("items")
	if rest.isArray() {
		prefix, rest = rest, v.get("additionalItems")
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
		if m.kind == tNever { // no value is allowed here, so the tuple ends before this member
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
