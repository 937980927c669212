package schemats

import "slices"

// marks say what is true of all objects in the schemas of a tool. This is written once, in the comment before the signature of
// the tool, not at each object.
type marks uint8

const (
	openInside marks = 1 << iota // all objects except the arguments object accept keys that are not listed
	openAll                      // all objects, including the arguments object, accept keys that are not listed
	nullInside                   // all optional properties may be null, except those of the arguments object
	nullAll                      // all optional properties may be null, including those of the arguments object
)

func (m marks) notes() []string {
	var out []string
	switch {
	case m&openAll != 0:
		out = append(out, "objects take other keys too")
	case m&openInside != 0:
		out = append(out, "objects inside take other keys too")
	}
	switch {
	case m&nullAll != 0:
		out = append(out, "optional ones may be null")
	case m&nullInside != 0:
		out = append(out, "optional ones inside objects may be null")
	}
	return out
}

// mark returns the marks of a tool, and removes from its types what the marks already say.
func mark(in, out *schema) marks {
	var all []*typ
	seen := map[*typ]bool{}
	var collect func(t *typ)
	collect = func(t *typ) {
		if seen[t] {
			return
		}
		seen[t] = true
		if t.kind == tRef {
			collect(t.def.body)
			return
		}
		if t.kind == tObject && len(t.props) > 0 {
			all = append(all, t)
		}
		t.parts(func(part *typ, _ string) { collect(part) })
	}
	var root *typ
	if in != nil {
		root = in.root.body.body()
		collect(root)
	}
	if out != nil {
		collect(out.root.body)
	}
	m := openMark(all, root) | nullMark(all, root)
	for _, t := range all {
		if m&openAll != 0 || m&openInside != 0 && t != root {
			t.rest = nil
		}
	}
	for _, t := range all { // in a separate loop, since it replaces types by copies
		for i := range t.props {
			if q := &t.props[i]; q.optional && (m&nullAll != 0 || m&nullInside != 0 && t != root) {
				q.t = q.t.withoutNull()
			}
		}
	}
	return m
}

func openMark(all []*typ, root *typ) marks {
	open, inside := 0, 0
	for _, t := range all {
		if t.rest != nil {
			open++
		}
		if t != root {
			inside++
		}
	}
	switch {
	case open == len(all) && open > 0 && root != nil && root.rest != nil:
		return openAll
	case open == inside && open > 1 && (root == nil || root.rest == nil):
		return openInside
	}
	return 0
}

func nullMark(all []*typ, root *typ) marks {
	const least = 4
	var optional, nullable [2]int // [0] without the arguments object, [1] with it
	for _, t := range all {
		for i := range t.props {
			if !t.props[i].optional {
				continue
			}
			is := int(bit(t.props[i].t.body().nullable()))
			optional[1]++
			nullable[1] += is
			if t != root {
				optional[0]++
				nullable[0] += is
			}
		}
	}
	switch {
	case nullable[1] >= least && nullable[1] == optional[1]:
		return nullAll
	case nullable[0] >= least && nullable[0] == optional[0]:
		return nullInside
	}
	return 0
}

// withoutNull returns t without the variant null.
func (t *typ) withoutNull() *typ {
	if t = t.settled(); t.kind != tUnion {
		return t
	}
	members := slices.DeleteFunc(slices.Clone(t.members), (*typ).isNull)
	return union(members).withDocs(t.desc, t.notes)
}
