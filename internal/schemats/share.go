package schemats

import (
	"encoding/binary"
	"slices"
	"strings"
)

// sharing finds the objects and long unions that stand several times in the
// schemas of one text, and makes a named type of each.
type sharing struct {
	// scope keeps types apart that print alike but are read under other marks.
	scope marks
	// ids are the numbers of what prints alike, by its form.
	ids    map[string]uint32
	shapes map[*typ]uint32
	loops  map[*def]uint32
	groups map[uint32]*group
	order  []*group
	walked map[*typ]bool
	used   map[string]int // see freeName
}

// group is one type and the places that it stands at.
type group struct {
	places []*typ
	count  int
	hint   string
	// def is set where the type is a recursive definition, which needs its name.
	def *def
}

func newSharing() *sharing {
	return &sharing{
		ids: map[string]uint32{}, shapes: map[*typ]uint32{}, loops: map[*def]uint32{},
		groups: map[uint32]*group{}, walked: map[*typ]bool{}, used: map[string]int{},
	}
}

// parts calls f with the types directly inside t, and the key of each property.
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

// body is what t prints as in place: t, or what its references lead to.
func (t *typ) body() *typ {
	for t.kind == tRef && !t.def.recursive {
		t = t.def.body
	}
	return t
}

// shape is a number that two types have in common only if they print alike, but
// for the docs of t itself.
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

// docs is a number for the docs of t, those of what it refers to included.
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

// add counts the types of a schema, which may be nil. An input's own object is no type for a
// name: its properties are the parameters.
func (s *sharing) add(doc *schema, input bool) {
	if doc == nil {
		return
	}
	root := doc.root
	t := root.body.body()
	switch {
	case root.recursive:
		root.name = root.hint
		s.walked[root.body] = true
		s.parts(t, true, root.hint)
	case input && t.kind != tRef:
		s.parts(t, true, root.hint)
	default:
		s.walk(root.body, true, root.hint)
	}
}

// walk counts t and what is inside. What stands in a type that occurred before
// is a place of its type, but no reason for a name.
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

// loop notes a recursive definition, and counts what is inside it once.
func (s *sharing) loop(d *def) {
	if s.walked[d.body] {
		return
	}
	s.walked[d.body] = true
	s.order = append(s.order, &group{hint: d.hint, def: d})
	s.parts(d.body, true, d.hint)
}

// name makes the named types, and puts references to them in their places.
func (s *sharing) name() {
	var named []*group
	for _, g := range slices.Backward(s.order) { // what is inside first: it makes what is around it shorter
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

// worth reports whether a name makes the text shorter, and not only more opaque:
// a short type reads better in place, but for an enum that is everywhere.
func (g *group) worth() bool {
	const statement = len("type  = ;\n")
	if g.count < 2 {
		return false
	}
	p := &printer{limit: maxInPlace, trial: true, o: Options{Descriptions: true, Constraints: true}}
	p.inline(g.places[0].body(), loose)
	if p.over {
		return true
	}
	saved := (g.count-1)*len(p.b) - g.count*len(g.hint) - statement
	return allLiterals(g.places[0].body()) && saved > 2*maxInPlace
}

func allLiterals(t *typ) bool {
	for _, m := range membersOf(t) {
		if m.kind != tLit {
			return false
		}
	}
	return true
}

// define replaces the places of g by references. Docs that are the same in all
// places stand at the definition.
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

// namedIn adds the named types that t needs to list, in the order of the text.
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
