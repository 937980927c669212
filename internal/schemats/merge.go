package schemats

import "slices"

// maxDistribute is the maximum number of combinations of the members of two unions that are written out.
const maxDistribute = 16

// intersect returns `a & b`. If possible, objects are merged, and unions of literals are reduced to the common literals.
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
	am, bm := membersOf(a), membersOf(b)
	switch {
	case a.kind == tRef && b.kind == tRef && a.def == b.def:
		return a
	case a.kind == tUnknown || b.kind == tUnknown || a.kind == tNever || b.kind == tNever:
		return c.intersect(a, b)
	case allSimple(am) && allSimple(bm):
		return filterSimple(am, bm).withUnionDocs(a).withUnionDocs(b)
	case a.mergeable() && b.mergeable():
		return c.mergeObjects(a, b)
	case (anyClosed(am) || anyClosed(bm)) && len(am)*len(bm) > 1 && len(am)*len(bm) <= maxDistribute:
		var out []*typ
		for _, x := range am {
			for _, y := range bm {
				out = append(out, c.intersect(x, y))
			}
		}
		return union(out).withUnionDocs(a).withUnionDocs(b)
	}
	return both(a, b)
}

// withUnionDocs returns t with the docs of u if u is a union. If u is not a union, t was made from u and already has the docs, so t
// is returned unchanged.
func (t *typ) withUnionDocs(u *typ) *typ {
	if u.kind != tUnion {
		return t
	}
	return t.withDocs(u.desc, u.notes)
}

// both returns `a & b` without simplifying it.
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

func membersOf(t *typ) []*typ {
	if t.kind == tUnion {
		return t.members
	}
	return []*typ{t}
}

func allSimple(ts []*typ) bool {
	return !slices.ContainsFunc(ts, func(t *typ) bool { return !t.simple() })
}

// anyClosed reports whether one of the types is an object that accepts only the listed keys. Such a type must not be written with
// `&`, which would add keys to it.
func anyClosed(ts []*typ) bool {
	return slices.ContainsFunc(ts, func(t *typ) bool {
		t = t.settled()
		return t.kind == tObject && t.closed
	})
}

// filterSimple returns the intersection of two unions of keyword types and literals, in linear time.
func filterSimple(a, b []*typ) *typ {
	index := func(ts []*typ) map[string]*typ {
		m := make(map[string]*typ, len(ts))
		for _, t := range ts {
			m[t.text] = t
		}
		return m
	}
	var out []*typ
	literals := func(from []*typ, other map[string]*typ, both bool) {
		for _, x := range from {
			y, same := other[x.text]
			switch {
			case same && both:
				out = append(out, x.withDocs(y.desc, y.notes))
			case !same && x.kind == tLit && other[literalOf(x.text)] != nil:
				// The notes of the type are not needed, since the literal satisfies them unless the schema is wrong.
				out = append(out, x.withDocs(other[literalOf(x.text)].desc, nil))
			}
		}
	}
	literals(a, index(b), true)
	literals(b, index(a), false)
	return union(out)
}

// mergeable reports whether t is an object that has no type for keys that are not listed.
func (t *typ) mergeable() bool {
	return t.kind == tObject && t.keys == nil && (t.rest == nil || t.rest.kind == tUnknown)
}

// mergeObjects returns `a & b` as one object. If one of the two does not allow a property of the other, the property is left out
// if it is optional, and has the type never if it is required.
func (c *converter) mergeObjects(a, b *typ) *typ {
	if !c.spend(len(a.props) + len(b.props)) {
		return c.tooLarge()
	}
	n := &typ{kind: tObject, closed: a.closed || b.closed, desc: joinText(a.desc, b.desc), notes: addNotes(a.notes, b.notes)}
	if n.rest = a.rest; n.closed {
		n.rest = nil
	} else if n.rest == nil {
		n.rest = b.rest
	}
	only := make(map[string]prop, len(b.props))
	for _, q := range b.props {
		only[q.key] = q
	}
	alone := func(p prop, other *typ) {
		switch {
		case other.closed && p.optional:
			return
		case other.closed:
			p.t = neverType
		}
		n.props = append(n.props, p)
	}
	for _, p := range a.props {
		if q, ok := only[p.key]; ok {
			n.props = append(n.props, prop{p.key, c.intersect(p.t, q.t), p.optional && q.optional})
			delete(only, p.key)
		} else {
			alone(p, b)
		}
	}
	for _, q := range b.props {
		if _, ok := only[q.key]; ok {
			alone(q, a)
		}
	}
	return n
}
