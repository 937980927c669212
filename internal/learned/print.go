package learned

import (
	"sort"
	"strings"

	"mcpx/internal/tokens"
)

// typ is a shape as it can be shown: without the keys that must not be shown, and with one type for all values of a
// map.
type typ struct {
	kinds   kinds
	members []member
	isMap   bool // the object is a map; value is the type of its values
	more    bool // there are members that are not in the field members, such as those whose keys must not be shown
	value   *typ
	items   *typ
	shown   int // how many members are printed; 0 means that the object is printed as "object"
}

type member struct {
	key      string
	optional bool
	*typ
}

// typeOf returns one type for all values that were at any of these places.
func typeOf(places []*place) *typ {
	t := &typ{}
	var fields []*field
	at := map[string]int{}
	var of [][]*place // the places of each field
	var items, rest []*place
	objects, rare, common, blind := uint32(0), 0, 0, false
	for _, p := range places {
		t.kinds |= p.kinds
		objects += p.objects
		t.more = t.more || p.cut || p.others > 0
		rare, blind = rare+int(p.others), blind || p.blind
		if p.items != nil {
			items = append(items, p.items)
		}
		if p.rest != nil {
			rest = append(rest, p.rest)
		}
		for _, f := range p.fields {
			i, known := at[f.key]
			if !known || f.key == "" {
				i = len(fields)
				at[f.key] = i
				fields = append(fields, &field{key: f.key, first: f.first, last: f.last})
				of = append(of, nil)
			}
			sum := fields[i]
			sum.seen, sum.first, sum.last = sum.seen+f.seen, min(sum.first, f.first), max(sum.last, f.last)
			of[i] = append(of[i], &f.place)
		}
	}
	if len(items) > 0 && !blind {
		t.items = typeOf(items)
	}
	for i, f := range fields {
		if !f.common() {
			rare += int(max(f.seen, 1))
			t.more = true
			continue
		}
		common += int(f.seen)
		t.members = append(t.members, member{f.key, f.seen < objects, typeOf(of[i])})
	}
	if t.kinds&isObject != 0 && (rare > common || t.like(common, int(objects))) {
		t.isMap, t.members = true, nil
		var values []*place
		for _, some := range of {
			values = append(values, some...)
		}
		if !blind {
			t.value = typeOf(append(values, rest...))
		}
	}
	return t
}

// Objects whose keys occur in several results are shown as a map only if they have at least mapKeys different keys together.
const mapKeys = 8

// like reports whether objects should be shown as a map, because their keys are data rather than a fixed set of names. Examples are
// a map from ids to values, and a row whose columns depend on the query. All of this must be true:
//
//   - there are at least mapKeys different keys;
//   - no key is in all objects;
//   - an object has on average at most a quarter of the keys;
//   - either all values are objects (or null), or no value is an object.
//
// The keys are those of t.members. objects is the number of objects. common is how often these keys occur in all objects together.
func (t *typ) like(common, objects int) bool {
	if len(t.members) < mapKeys || 4*common > len(t.members)*objects {
		return false
	}
	all := kinds(0)
	for _, m := range t.members {
		if !m.optional {
			return false
		}
		all |= m.kinds
	}
	return all&isObject == 0 || all&^isNull == isObject
}

// minResults is how many results are needed before a shape is shown.
const minResults = 2

// TypeScript returns the shape as a TypeScript type. The prefix and the type together have at most limit tokens. It returns "" if
// too little is known, or if even the shortest form of the type does not fit. Objects that do not fit are written as "object"; if
// keys do not fit, a comment with an ellipsis stands for them.
func (s *Shape) TypeScript(prefix string, limit int) string {
	if s.results < minResults || s.root.kinds == 0 {
		return ""
	}
	root := typeOf([]*place{&s.root})
	fits := func() bool { return tokens.Ceiling(prefix+root.String()) <= limit }
	if !fits() {
		return ""
	}
	// Objects are expanded from the outermost level inwards, as long as the type fits.
	for level := []*typ{root}; len(level) > 0; {
		var objects []*typ
		for _, t := range level {
			objects = t.objects(objects)
		}
		level = nil
		for _, t := range objects {
			n := len(t.members)
			t.shown = n - sort.Search(n, func(hidden int) bool { t.shown = n - hidden; return fits() })
			for i := range t.shown {
				level = append(level, t.members[i].typ)
			}
		}
	}
	return root.String()
}

// objects appends to list the objects with members in t, but not the objects inside of their members.
func (t *typ) objects(list []*typ) []*typ {
	if t == nil {
		return list
	}
	if len(t.members) > 0 {
		list = append(list, t)
	}
	return t.items.objects(t.value.objects(list))
}

func (t *typ) String() string {
	var b strings.Builder
	t.write(&b)
	return b.String()
}

var words = [...]struct {
	kind kinds
	word string
}{{isString, "string"}, {isNumber, "number"}, {isBoolean, "boolean"}, {isNull, "null"}}

// alternatives returns how many types String joins with |.
func (t *typ) alternatives() (n int) {
	for k := t.kinds; k != 0; k &= k - 1 {
		n++
	}
	return n
}

func (t *typ) write(b *strings.Builder) {
	if t == nil || t.kinds == 0 {
		b.WriteString("unknown")
		return
	}
	bar := ""
	if t.kinds&isObject != 0 {
		t.writeObject(b)
		bar = " | "
	}
	if t.kinds&isArray != 0 {
		b.WriteString(bar)
		if t.items != nil && t.items.alternatives() > 1 {
			b.WriteByte('(')
			t.items.write(b)
			b.WriteByte(')')
		} else {
			t.items.write(b)
		}
		b.WriteString("[]")
		bar = " | "
	}
	for _, w := range words {
		if t.kinds&w.kind != 0 {
			b.WriteString(bar + w.word)
			bar = " | "
		}
	}
}

func (t *typ) writeObject(b *strings.Builder) {
	switch {
	case t.isMap:
		b.WriteString("Record<string, ")
		t.value.write(b)
		b.WriteByte('>')
		return
	case t.shown == 0 && len(t.members) == 0 && !t.more:
		b.WriteString("{}")
		return
	case t.shown == 0:
		b.WriteString("object")
		return
	}
	b.WriteByte('{')
	for i, m := range t.members[:t.shown] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(m.key)
		if m.optional {
			b.WriteByte('?')
		}
		b.WriteString(": ")
		m.write(b)
	}
	if t.more || t.shown < len(t.members) {
		b.WriteString(" /*…*/")
	}
	b.WriteByte('}')
}
