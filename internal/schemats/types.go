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

// typ is a TypeScript type. Once made it is shared: copy it to change it.
type typ struct {
	kind kind
	text string
	// props, rest and closed belong to tObject. rest is the type of the keys that
	// are not listed, nil where the schema does not mention them, and unknown
	// beside props: TypeScript demands that every listed property fits it. closed:
	// there are no other keys.
	props  []prop
	rest   *typ
	closed bool
	// keys is the union of the allowed names of an object without props.
	keys *typ
	// elem is the element of an array, or the rest of a tuple (nil: none).
	elem *typ
	// required is the number of members that a tuple must have.
	required int
	// lax marks a tuple whose schema gives no length: strictly every element is
	// optional and more may follow, but most authors mean exactly these.
	lax bool
	// members are those of a tuple, union or intersection.
	members []*typ
	def     *def

	desc  string
	notes []note
}

// prop is one property; its description is its type's.
type prop struct {
	key      string
	t        *typ
	optional bool
}

// note is a constraint that the type does not express.
type note struct {
	text string
	// must marks a note that is printed with any options: a part of the schema that
	// the type does not express.
	must bool
}

// def is a part of a schema that a $ref points to.
type def struct {
	// hint is the identifier that the pointer suggests.
	hint string
	name string
	body *typ
	// done is false while the body is being converted: a reference that meets
	// that is a recursion.
	done      bool
	recursive bool
	state     uint8
	// named: printed as a type statement of its own, as recursive ones must be.
	// Else in place.
	named bool
}

var (
	unknownType = &typ{kind: tUnknown}
	neverType   = &typ{kind: tNever}
)

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

// nullable reports whether null is one of the variants.
func (t *typ) nullable() bool {
	for _, m := range membersOf(t) {
		if m.kind == tPrim && m.text == "null" {
			return true
		}
	}
	return false
}

// settled is the body of a reference where it may be looked into: converted and
// not part of a recursion.
func (t *typ) settled() *typ {
	for i := 0; i < 32 && t.kind == tRef && t.def.done && !t.def.recursive; i++ {
		t = t.def.body.withDocs(t.desc, t.notes)
	}
	return t
}

// key is equal for types that are surely the same; "" where that is not cheap to say.
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

// union joins types: nested unions flattened, equal members once, never dropped. A
// value beside its own type stays: the schema has a reason to name it.
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
		if m.kind == tNever {
			return
		}
		k := m.key()
		if m.kind == tRef {
			for _, x := range flat {
				if x.kind == tRef && x.def == m.def {
					return
				}
			}
		} else if k != "" {
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

// hoist moves the notes of a member to the union if no other member has any:
// `(string /* uuid */) | null` reads better as `string | null /* uuid */`.
func hoist(u *typ) *typ {
	at := -1
	for i, m := range u.members {
		if m.desc == "" && len(m.notes) == 0 {
			if m.kind == tPrim && m.text == "null" {
				continue
			}
			return u
		}
		if at >= 0 {
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

// either is the union of two types that print alike: a constraint that only one
// has does not bind.
func either(a, b *typ) *typ {
	n := *a
	n.desc = joinText(a.desc, b.desc)
	if !slices.Equal(a.notes, b.notes) {
		n.notes = nil
		if ta, tb := noteText(a.notes, true), noteText(b.notes, true); ta != "" && tb != "" {
			n.notes = []note{{ta + " or " + tb, noteText(a.notes, false)+noteText(b.notes, false) != ""}}
		}
	}
	return &n
}
