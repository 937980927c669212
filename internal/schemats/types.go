package schemats

import "slices"

type kind uint8

const (
	tUnknown kind = iota
	tNever
	// tPrim is a type that is a keyword: string, number, boolean or null. The field text has the keyword.
	tPrim
	// tLit is the type of one literal value. The field text is the literal as it is printed.
	tLit
	tObject
	tArray
	tTuple
	tUnion
	tInter
	// tRef is a reference to the definition def, of which either the name or the body is printed.
	tRef
)

// typ is a TypeScript type. Several types may contain the same *typ, so it is copied before a change that is not meant for all
// of them.
type typ struct {
	kind kind
	text string
	// props, rest and closed belong to tObject. rest is the type of the keys that props does not
	// list; nil if the schema does not mention such keys. If there are props, rest is nil or
	// unknown, since TypeScript demands that the type of each property fits rest. closed means
	// that only the keys in props are allowed.
	props  []prop
	rest   *typ
	closed bool
	// keys is the union of the allowed keys of an object without props. It is nil if the schema
	// does not name the allowed keys.
	keys *typ
	// elem is the type of the elements of an array. For a tuple, it is the type of further elements, after members; nil means
	// that there are no further elements.
	elem *typ
	// required is the number of members that a tuple must have.
	required int
	// lax marks a tuple whose schema has no minItems. By the standard of JSON Schema, every
	// element is then optional and more may follow, but most authors mean exactly these elements.
	lax bool
	// members are the members of a tuple, union or intersection.
	members []*typ
	def     *def

	desc  string
	notes []note
}

// prop is one property of an object. Its description is in the type t.
type prop struct {
	key      string
	t        *typ
	optional bool
}

// note is a constraint that is written in a comment.
type note struct {
	text string
	// must means that the constraint is written even if the description already mentions it.
	must bool
}

// def is a part of a schema to which a $ref points, the root of a schema, or a type that got a
// name because it occurs several times.
type def struct {
	// hint is the preferred name, which for a $ref is from its JSON pointer.
	hint string
	name string
	body *typ
	// done is false while the body is being converted. A reference to d that is found meanwhile
	// makes d recursive.
	done      bool
	recursive bool
	visit     visit
	// named means that d is written in a type statement of its own, which recursive types need. Otherwise the body of d is written
	// in place of each reference to d.
	named bool
}

// visit says whether breakCycle has visited a definition.
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

// unreadable returns the type for a part of a schema that cannot be converted: unknown, with the reason in a note.
func unreadable(reason string) *typ { return unknownType.withDocs("", []note{{reason, true}}) }

func prim(text string, notes ...note) *typ {
	return &typ{kind: tPrim, text: text, notes: notes}
}

// withDocs returns t with a description and notes added. It does not change t itself.
func (t *typ) withDocs(desc string, notes []note) *typ {
	if desc == "" && len(notes) == 0 || desc == t.desc && len(notes) == 0 {
		return t
	}
	n := *t
	n.desc = joinText(desc, t.desc)
	n.notes = addNotes(t.notes, notes)
	return &n
}

func (t *typ) withoutDescription() *typ {
	if t.desc == "" {
		return t
	}
	n := *t
	n.desc = ""
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

// literalOf returns the keyword of the type of a literal. The argument is the literal as it is
// printed.
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

// nullable reports whether t is null or a union that has null as a member.
func (t *typ) nullable() bool { return slices.ContainsFunc(membersOf(t), (*typ).isNull) }

// settled returns the target of t if t is a reference to a definition that is fully converted and
// not recursive. Otherwise it returns t.
func (t *typ) settled() *typ {
	for i := 0; i < 32 && t.kind == tRef && t.def.done && !t.def.recursive; i++ {
		t = t.def.body.withDocs(t.desc, t.notes)
	}
	return t
}

// key returns a string that is the same for types that differ at most in their docs. It returns such a string for unknown and
// simple types, and for arrays of elements whose own string has less than 40 bytes. For any other type the result is empty.
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

// union returns the union of types. It flattens nested unions, and drops never and repeated
// members. A literal such as "a" is kept even if string is also a member, since the schema has a
// reason to mention it.
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

// hoist moves the docs of a member to the union u if the only other member is null, and has no docs: `string | null /* uuid */` is
// easier to read than `(string /* uuid */) | null`.
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

// either returns the union of two types that differ only in their docs. If only one of them has constraints, its constraints are
// dropped, since the union also allows all values of the other type. If both types have constraints, the constraints are joined
// with "or".
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
