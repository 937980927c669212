package schemats

// maxDistribute bounds how many combinations of two unions are written out.
const maxDistribute = 16

// intersect is the type of what satisfies both. Objects are merged, contradictions
// become never, and what cannot be simplified stays an intersection.
func (c *converter) intersect(a, b *typ) *typ {
	if a == b {
		return a
	}
	switch {
	case a.kind == tUnknown:
		return b.withDocs(a.desc, a.notes)
	case b.kind == tUnknown:
		return a.withDocs(b.desc, b.notes)
	case a.kind == tNever || b.kind == tNever:
		return neverType
	}
	if !c.spend(1) {
		return c.tooLarge()
	}
	a, b = a.settled(), b.settled()
	switch {
	case a.kind == tRef && b.kind == tRef && a.def == b.def:
		return a
	case a.kind == tUnknown || b.kind == tUnknown || a.kind == tNever || b.kind == tNever:
		return c.intersect(a, b)
	case a.kind == tRef || b.kind == tRef || a.kind == tInter || b.kind == tInter:
		return both(a, b)
	case a.kind == tUnion || b.kind == tUnion:
		return c.intersectUnion(a, b)
	case a.simple() || b.simple():
		return intersectSimple(a, b)
	case a.kind == tObject && b.kind == tObject:
		return c.mergeObjects(a, b)
	case a.kind == tObject || b.kind == tObject:
		return neverType
	}
	return c.mergeArrays(a, b)
}

// both is `a & b`, without simplification.
func both(a, b *typ) *typ {
	n := &typ{kind: tInter, desc: joinText(a.desc, b.desc), notes: addNotes(a.notes, b.notes)}
	for _, t := range [...]*typ{a, b} {
		if t.kind == tInter {
			n.members = append(n.members, t.members...)
		} else {
			n.members = append(n.members, t.withoutDocs())
		}
	}
	if len(n.members) > 64 {
		n.members = n.members[:64]
		n.notes = addNotes(n.notes, []note{{"cut: too many parts", true}})
	}
	return n
}

func intersectSimple(a, b *typ) *typ {
	if !a.simple() || !b.simple() {
		return neverType
	}
	if a.kind == tLit && b.kind == tPrim {
		a, b = b, a
	}
	switch {
	case a.text == b.text:
		return a.withDocs(b.desc, b.notes)
	case a.kind == tPrim && b.kind == tLit && literalOf(b.text) == a.text:
		return b.withDocs(a.desc, nil)
	}
	return neverType
}

func membersOf(t *typ) []*typ {
	if t.kind == tUnion {
		return t.members
	}
	return []*typ{t}
}

// intersectUnion distributes where that leaves few and small members, else keeps
// `base & (a | b)`, which says each part once.
func (c *converter) intersectUnion(a, b *typ) *typ {
	am, bm := membersOf(a), membersOf(b)
	desc, notes := "", []note(nil)
	for _, t := range [...]*typ{a, b} {
		if t.kind == tUnion {
			desc, notes = joinText(desc, t.desc), addNotes(notes, t.notes)
		}
	}
	if allSimple(am) && allSimple(bm) {
		return filterSimple(am, bm).withDocs(desc, notes)
	}
	if len(am)*len(bm) > maxDistribute || complexMembers(am) > 1 && !anyClosed(am) || complexMembers(bm) > 1 && !anyClosed(bm) {
		if t := c.keepApart(a, b, am, bm); t != nil {
			return t.withDocs(desc, notes)
		}
	}
	if !c.spend(len(am) * len(bm)) {
		return c.tooLarge()
	}
	var out []*typ
	for _, x := range am {
		for _, y := range bm {
			out = append(out, c.intersect(x, y))
		}
	}
	return union(out).withDocs(desc, notes)
}

// keepApart drops the members that the other side excludes by kind, and joins
// what is left with &. It gives nil where members must be merged one by one.
func (c *converter) keepApart(a, b *typ, am, bm []*typ) *typ {
	possible := func(from, other []*typ) *typ {
		var out []*typ
		for _, x := range from {
			for _, y := range other {
				if overlap(x, y) {
					out = append(out, x)
					break
				}
			}
		}
		return union(out)
	}
	x, y := possible(am, bm), possible(bm, am)
	if x.kind == tNever || y.kind == tNever {
		return neverType
	}
	if x.kind != tUnion && y.kind != tUnion {
		return c.intersect(x, y)
	}
	return both(x.withDocs("", nil), y.withDocs("", nil))
}

// overlap reports whether two members can have a value in common, by kind.
func overlap(a, b *typ) bool {
	a, b = a.settled(), b.settled()
	class := func(t *typ) string {
		switch t.kind {
		case tPrim:
			return t.text
		case tLit:
			return literalOf(t.text)
		case tObject:
			return "object"
		case tArray, tTuple:
			return "array"
		}
		return ""
	}
	x, y := class(a), class(b)
	if a.kind == tLit && b.kind == tLit {
		return a.text == b.text
	}
	return x == "" || y == "" || x == y
}

func allSimple(ts []*typ) bool {
	for _, t := range ts {
		if !t.simple() {
			return false
		}
	}
	return true
}

func complexMembers(ts []*typ) int {
	n := 0
	for _, t := range ts {
		if !t.simple() {
			n++
		}
	}
	return n
}

func anyClosed(ts []*typ) bool {
	for _, t := range ts {
		if t = t.settled(); t.kind == tObject && t.closed {
			return true
		}
	}
	return false
}

// filterSimple intersects two unions of keyword types and literals in one pass.
func filterSimple(a, b []*typ) *typ {
	index := func(ts []*typ) map[string]*typ {
		m := make(map[string]*typ, len(ts))
		for _, t := range ts {
			m[t.text] = t
		}
		return m
	}
	ai, bi := index(a), index(b)
	var out []*typ
	for _, x := range a {
		if y, ok := bi[x.text]; ok {
			out = append(out, intersectSimple(x, y))
		} else if x.kind == tLit {
			if y, ok := bi[literalOf(x.text)]; ok {
				out = append(out, intersectSimple(x, y))
			}
		}
	}
	for _, y := range b {
		if _, ok := ai[y.text]; !ok && y.kind == tLit {
			if x, ok := ai[literalOf(y.text)]; ok {
				out = append(out, intersectSimple(x, y))
			}
		}
	}
	return union(out)
}

// mergeObjects writes the properties of both as one object. A key that the other
// side does not have obeys the other side's rule for additional keys.
func (c *converter) mergeObjects(a, b *typ) *typ {
	if !c.spend(len(a.props) + len(b.props)) {
		return c.tooLarge()
	}
	if a.keys != nil || b.keys != nil {
		return both(a, b)
	}
	n := &typ{kind: tObject, closed: a.closed || b.closed, desc: joinText(a.desc, b.desc), notes: addNotes(a.notes, b.notes)}
	bi := make(map[string]int, len(b.props))
	for i := range b.props {
		bi[b.props[i].key] = i
	}
	ai := make(map[string]bool, len(a.props))
	for _, p := range a.props {
		ai[p.key] = true
		if i, ok := bi[p.key]; ok {
			q := b.props[i]
			p.t, p.optional = c.intersect(p.t, q.t), p.optional && q.optional
		} else if p = c.underRest(p, b); p.t == nil {
			continue
		}
		n.props = append(n.props, p)
	}
	for _, p := range b.props {
		if !ai[p.key] {
			if p = c.underRest(p, a); p.t != nil {
				n.props = append(n.props, p)
			}
		}
	}
	if !n.closed {
		n.index = c.mergeRest(a, b, n.props)
	}
	return n
}

// rest is the type of keys that are not listed, nil if the schema gives none.
func (t *typ) rest() *typ {
	switch {
	case t.index == nil:
		return nil
	case t.index.rest != nil:
		return t.index.rest
	}
	return t.index.t
}

// underRest is a property that only one side lists, under the other side's rule.
// A nil type: the property cannot be there.
func (c *converter) underRest(p prop, other *typ) prop {
	if other.closed {
		if p.optional {
			p.t = nil
		} else {
			p.t = neverType
		}
		return p
	}
	if r := other.rest(); r != nil {
		p.t = c.intersect(p.t, r)
	}
	return p
}

func (c *converter) mergeRest(a, b *typ, props []prop) *index {
	x, y := a.rest(), b.rest()
	switch {
	case x == nil && y == nil:
		return nil
	case x == nil:
		x = y
	case y != nil:
		x = c.intersect(x, y)
	}
	return restIndex(x, props)
}

// mergeArrays intersects arrays and tuples element by element.
func (c *converter) mergeArrays(a, b *typ) *typ {
	n := &typ{kind: tArray, desc: joinText(a.desc, b.desc), notes: addNotes(a.notes, b.notes)}
	if a.kind == tArray && b.kind == tArray {
		n.elem = c.intersect(a.elem, b.elem)
		return n
	}
	n.kind = tTuple
	n.required = max(a.required, b.required)
	at := func(t *typ, i int) *typ {
		if i < len(t.members) {
			return t.members[i]
		}
		return t.elem
	}
	for i := 0; i < max(len(a.members), len(b.members)); i++ {
		x, y := at(a, i), at(b, i)
		if x == nil || y == nil {
			if i < n.required {
				return neverType
			}
			return n
		}
		n.members = append(n.members, c.intersect(x, y))
	}
	if a.elem != nil && b.elem != nil {
		n.elem = c.intersect(a.elem, b.elem)
	}
	return n
}
