package schemats

import "slices"

type kind uint8

const (
	tUnknown kind = iota
	tNever
	// tPrim is a keyword type: text is string, number, boolean or null.
	tPrim
	// tLit is a literal: text is how it is printed.
	tLit
	tObject
	tArray
	tTuple
	tUnion
	tInter
	// tRef points to a definition that is printed by name or in place.
	tRef
)

// typ is a TypeScript type. Types are shared, so they are copied before a change.
type typ struct {
	kind kind
	text string
	// props, rest and closed belong to tObject. rest is the type of the keys that are not
	// listed, nil if the schema does not mention them. With props it is unknown, as
	// TypeScript requires every listed property to fit it. closed means no other keys.
	props  []prop
	rest   *typ
	closed bool
	// keys is the union of the allowed names of an object without props.
	keys *typ
	// elem is the element of an array, or the rest of a tuple (nil: none).
	elem *typ
	// required is the number of members that a tuple must have.
	required int
	// lax marks a tuple whose schema has no length. By the standard every element is
	// optional and more may follow, but most authors mean exactly these elements.
	lax bool
	// members are the members of a tuple, union or intersection.
	members []*typ
	def     *def

	desc  string
	notes []note
}

// prop is one property. The description of the property is in its type.
type prop struct {
	key      string
	t        *typ
	optional bool
}

// note is a constraint for a comment.
type note struct {
	text string
	// must marks a keyword that the type does not express. It is written even if the
	// description repeats it.
	must bool
}

// def is a part of a schema that a $ref points to.
type def struct {
	// hint is the identifier that the pointer suggests.
	hint string
	name string
	body *typ
	// done is false while the body is being converted: a reference to d then is a recursion.
	done      bool
	recursive bool
	visit     visit
	// named means that d has a type statement of its own, as recursive types must. Others
	// are written in place.
	named bool
}

// visit is the progress of breakCycle.
type visit uint8

const (
	unvisited visit = iota
	visiting
	visited
)

var (
	unknownType = &typ{kind: tUnknown}
	neverType   = &typ{kind: tNever}
)

// unreadable is the type of a part of a schema that cannot be converted.
func unreadable(why string) *typ { return unknownType.withDocs("", []note{{why, true}}) }

func prim(text string, notes ...note) *typ {
	return &typ{kind: tPrim, text: text, notes: notes}
}

// withDocs is t with a description and notes added; t itself is not changed.
func (t *typ) withDocs(desc string, notes []note) *typ {
	if desc == "" && len(notes) == 0 || desc == t.desc && len(notes) == 0 {
		return t
	}
	n := *t
	n.desc = joinText(desc, t.desc)
	n.notes = addNotes(t.notes, notes)
	return &n
}

func (t *typ) withoutDocs() *typ {
	if t.desc == "" && len(t.notes) == 0 {
		return t
	}
	n := *t
	n.desc, n.notes = "", nil
	return &n
}

func joinText(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	return sentence(a, b)
}

func addNotes(a, b []note) []note {
	if len(b) == 0 {
		return a
	}
	out := slices.Clone(a)
	for _, n := range b {
		if !slices.Contains(out, n) && len(out) < 64 {
			out = append(out, n)
		}
	}
	return out
}

// literalOf names the keyword type of a literal's text.
func literalOf(text string) string {
	switch text[0] {
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	}
	return "number"
}

func (t *typ) simple() bool { return t.kind == tPrim || t.kind == tLit }

func (t *typ) isNull() bool { return t.kind == tPrim && t.text == "null" }

// nullable reports whether null is one of the variants.
func (t *typ) nullable() bool { return slices.ContainsFunc(membersOf(t), (*typ).isNull) }

// settled is the target of a reference that is converted and not recursive, else t.
func (t *typ) settled() *typ {
	for i := 0; i < 32 && t.kind == tRef && t.def.done && !t.def.recursive; i++ {
		t = t.def.body.withDocs(t.desc, t.notes)
	}
	return t
}

// key identifies simple types: equal keys are equal types. It is empty for other types.
func (t *typ) key() string {
	switch t.kind {
	case tUnknown:
		return "unknown"
	case tPrim, tLit:
		return t.text
	case tArray:
		if k := t.elem.key(); k != "" && len(k) < 40 {
			return "(" + k + ")[]"
		}
	}
	return ""
}

// union joins types. It flattens nested unions, and drops never and repeated members. A
// literal beside its own type is kept: the schema has a reason to name it.
func union(members []*typ) *typ {
	var flat []*typ
	seen := make(map[string]int, len(members))
	var add func(m *typ)
	add = func(m *typ) {
		if m.kind == tUnion && m.desc == "" && len(m.notes) == 0 {
			for _, x := range m.members {
				add(x)
			}
			return
		}
		sameRef := func(x *typ) bool { return x.kind == tRef && x.def == m.def }
		if m.kind == tNever || m.kind == tRef && slices.ContainsFunc(flat, sameRef) {
			return
		}
		if k := m.key(); k != "" {
			if i, ok := seen[k]; ok {
				flat[i] = either(flat[i], m)
				return
			}
			seen[k] = len(flat)
		}
		flat = append(flat, m)
	}
	for _, m := range members {
		add(m)
	}
	if i, ok := seen["unknown"]; ok {
		return flat[i]
	}
	switch len(flat) {
	case 0:
		return neverType
	case 1:
		return flat[0]
	}
	return hoist(&typ{kind: tUnion, members: flat})
}

// hoist moves the docs of a member to the union if all others are a plain null:
// `(string /* uuid */) | null` reads better as `string | null /* uuid */`.
func hoist(u *typ) *typ {
	at := -1
	for i, m := range u.members {
		documented := m.desc != "" || len(m.notes) > 0
		switch {
		case !documented && m.isNull():
			continue
		case !documented || at >= 0:
			return u
		}
		at = i
	}
	if at >= 0 {
		u.desc, u.notes = u.members[at].desc, u.members[at].notes
		u.members[at] = u.members[at].withoutDocs()
	}
	return u
}

// either is the union of two types that print alike. A constraint that only one of them
// has is dropped.
func either(a, b *typ) *typ {
	n := *a
	n.desc = joinText(a.desc, b.desc)
	if !slices.Equal(a.notes, b.notes) {
		n.notes = nil
		if len(a.notes) > 0 && len(b.notes) > 0 {
			must := func(n note) bool { return n.must }
			n.notes = []note{{noteText(a.notes) + " or " + noteText(b.notes),
				slices.ContainsFunc(a.notes, must) || slices.ContainsFunc(b.notes, must)}}
		}
	}
	return &n
}
