package schemats

import (
	"encoding/binary"
	"slices"
	"strings"
)

// sharing finds the objects and long unions that occur several times in the schemas of one
// text, and makes a named type for each of them.
type sharing struct {
	// scope has the marks of the current tool. The marks of a tool say something about all its objects, so the same text means
	// different types in tools with different marks.
	scope marks
	// ids maps what is printed to a number: an encoding of a type, or of docs (a description with notes). Types that are printed
	// alike have the same encoding, and so the same number in shapes.
	ids    map[string]uint32
	shapes map[*typ]uint32
	loops  map[*def]uint32 // a number for each recursive definition
	groups map[uint32]*group
	order  []*group
	walked map[*typ]bool
	used   map[string]int // the names in use; see freeName
}

// group is one type, and all places where it occurs.
type group struct {
	places []*typ
	count  int
	hint   string
	// def is the named type, or nil while there is none. For a recursive definition it is set
	// from the beginning.
	def *def
}

// nameShared makes the named types of one input and one output; either may be nil.
func nameShared(in, out *schema) {
	s := newSharing()
	s.add(in, true)
	s.add(out, false)
	s.name()
}

func newSharing() *sharing {
	return &sharing{
		ids: map[string]uint32{}, shapes: map[*typ]uint32{}, loops: map[*def]uint32{},
		groups: map[uint32]*group{}, walked: map[*typ]bool{}, used: map[string]int{},
	}
}

// parts calls f for each type directly inside t. key is the name of the property that has the
// type, and empty for types that are not properties.
func (t *typ) parts(f func(part *typ, key string)) {
	for i := range t.props {
		f(t.props[i].t, t.props[i].key)
	}
	for _, m := range t.members {
		f(m, "")
	}
	for _, m := range [...]*typ{t.rest, t.keys, t.elem} {
		if m != nil {
			f(m, "")
		}
	}
}

// body returns t, or if t is a reference, its target. It follows references to references, but
// no reference to a recursive definition.
func (t *typ) body() *typ {
	for t.kind == tRef && !t.def.recursive {
		t = t.def.body
	}
	return t
}

// shape returns a number that is the same for all types that are printed like t. The docs of t
// itself make no difference.
func (s *sharing) shape(t *typ) uint32 {
	t = t.body()
	if t.kind == tRef {
		if s.loops[t.def] == 0 {
			s.loops[t.def] = uint32(len(s.loops) + 1)
		}
		return s.id(binary.AppendUvarint([]byte("ref "), uint64(s.loops[t.def])))
	}
	if n, ok := s.shapes[t]; ok {
		return n
	}
	flags := bit(t.closed) | bit(t.lax)<<1 | bit(t.rest != nil)<<2 | bit(t.keys != nil)<<3 | bit(t.elem != nil)<<4
	b := []byte{byte(s.scope), byte(t.kind), flags}
	b = binary.AppendUvarint(b, uint64(t.required))
	b = appendQuoted(b, t.text)
	for i := range t.props {
		b = append(b, bit(t.props[i].optional))
	}
	t.parts(func(part *typ, key string) {
		b = appendQuoted(b, key)
		b = binary.AppendUvarint(b, uint64(s.shape(part)))
		b = binary.AppendUvarint(b, uint64(s.docs(part)))
	})
	n := s.id(b)
	s.shapes[t] = n
	return n
}

// docs returns a number that is the same for all types with the same docs (description and notes) as t. If t is a reference, the
// docs of its target are included, unless the target is a recursive definition.
func (s *sharing) docs(t *typ) uint32 {
	b := []byte("docs ")
	for ; ; t = t.def.body {
		b = appendQuoted(b, t.desc)
		for _, n := range t.notes {
			b = append(appendQuoted(b, n.text), bit(n.must))
		}
		if t.kind != tRef || t.def.recursive {
			return s.id(b)
		}
	}
}

func (s *sharing) id(form []byte) uint32 {
	n, ok := s.ids[string(form)]
	if !ok {
		n = uint32(len(s.ids) + 1)
		s.ids[string(form)] = n
	}
	return n
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// add counts the types of a schema; doc may be nil. The root of an input is not counted unless
// it is recursive: it needs no name, since its properties are written as parameters.
func (s *sharing) add(doc *schema, input bool) {
	if doc == nil {
		return
	}
	root := doc.root
	t := root.body.body()
	switch {
	case root.recursive:
		if root.name = root.hint; s.used[root.name] > 0 { // by another tool of the text
			root.name = freeName(root.hint, s.used)
		}
		s.used[root.name] = 1
		s.walked[root.body] = true
		s.parts(t, true, root.hint)
	case input && t.kind != tRef:
		s.parts(t, true, root.hint)
	default:
		s.walk(root.body, true, root.hint)
	}
}

// walk visits t and the types inside it, and counts them if counted is true. When a type is met again, the types inside it are not
// counted again: a name for the outer type is enough. hint suggests a name.
func (s *sharing) walk(t *typ, counted bool, hint string) {
	body := t.body()
	if body.kind == tRef {
		s.loop(body.def)
		return
	}
	first := !s.walked[t]
	s.walked[t] = true
	switch body.kind {
	case tObject, tUnion, tInter, tTuple:
		n := s.shape(body)
		g := s.groups[n]
		if g == nil {
			name := nameFrom(hint)
			g = &group{hint: strings.ToUpper(name[:1]) + name[1:]}
			if t.kind == tRef {
				g.hint = t.def.hint
			}
			s.groups[n] = g
			s.order = append(s.order, g)
		}
		if first {
			g.places = append(g.places, t)
		}
		if counted {
			g.count++
		}
		counted = counted && g.count == 1
	}
	if first && !(body != t && s.walked[body]) {
		s.walked[body] = true
		s.parts(body, counted, hint)
	}
}

func (s *sharing) parts(t *typ, counted bool, hint string) {
	t.parts(func(part *typ, key string) {
		if key == "" {
			key = hint
		}
		s.walk(part, counted, key)
	})
}

// loop adds a recursive definition to the types that may get a name. It visits each such definition only once, because the
// recursion would not end otherwise.
func (s *sharing) loop(d *def) {
	if s.walked[d.body] {
		return
	}
	s.walked[d.body] = true
	s.order = append(s.order, &group{hint: d.hint, def: d})
	s.parts(d.body, true, d.hint)
}

// name gives names to the types that should have one. Wherever such a type occurs, name replaces it by a reference.
func (s *sharing) name() {
	var named []*group
	for _, g := range slices.Backward(s.order) { // inner types first: their names make the outer types shorter
		if g.def == nil && !g.worth() {
			continue
		}
		named = append(named, g)
		if g.def == nil {
			s.define(g)
		}
	}
	for _, g := range slices.Backward(named) {
		g.def.name, g.def.named = freeName(nameFrom(g.hint), s.used), true
	}
}

// maxInPlace is the maximum length, in bytes, of a type that gets no name though it occurs several times.
const maxInPlace = 40

// worth reports whether the type of g should get a name. A short type is written where it occurs, unless it is an enum that occurs
// so often that a name saves much text.
func (g *group) worth() bool {
	const statement = len("type  = ;\n")
	if g.count < 2 {
		return false
	}
	p := &printer{limit: maxInPlace, trial: true}
	body := g.places[0].body()
	p.inline(body, loose)
	if p.over {
		return true
	}
	saved := (g.count-1)*len(p.b) - g.count*len(g.hint) - statement
	noLiteral := func(t *typ) bool { return t.kind != tLit }
	return saved > 2*maxInPlace && !slices.ContainsFunc(membersOf(body), noLiteral)
}

// define makes the named type of g, and replaces the type by a reference wherever it occurs. If
// the docs are the same in all these places, the definition gets them; otherwise each reference
// keeps its own.
func (s *sharing) define(g *group) {
	same := true
	for _, t := range g.places {
		same = same && s.docs(t) == s.docs(g.places[0])
	}
	flat := func(t *typ) (desc string, notes []note) {
		for ; t.kind == tRef; t = t.def.body {
			desc, notes = joinText(desc, t.desc), addNotes(notes, t.notes)
		}
		return joinText(desc, t.desc), addNotes(notes, t.notes)
	}
	body := *g.places[0].body()
	body.desc, body.notes = "", nil
	if same {
		body.desc, body.notes = flat(g.places[0])
	}
	g.def = &def{hint: g.hint, body: &body, done: true}
	for _, t := range g.places {
		ref := typ{kind: tRef, def: g.def}
		if !same {
			ref.desc, ref.notes = flat(t)
		}
		*t = ref
	}
}

// namedIn appends the named types that t refers to, also indirectly, to list, and returns it.
// They are in the order in which they are first referred to.
func namedIn(t *typ, seen map[*typ]bool, list []*def) []*def {
	if seen[t] {
		return list
	}
	seen[t] = true
	if t.kind == tRef {
		if t.def.named && !slices.Contains(list, t.def) {
			list = append(list, t.def)
		}
		return namedIn(t.def.body, seen, list)
	}
	t.parts(func(part *typ, _ string) { list = namedIn(part, seen, list) })
	return list
}
