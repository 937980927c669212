package schemats

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// inPart is the comment after a type from which parts are left out.
const inPart = " // in part"

// Along returns a TypeScript declaration of an input schema, reduced to the parts that lead to the given places. A place is a path
// into the arguments: property names and array indexes, from the outside to the inside. If an object has no property with the name
// in the path, all its properties are written.
//
// The text has at most `most` tokens, as counted by the function estimate. If it would be longer, Along leaves out the
// descriptions, then the deeper levels. If it still does not fit, Along returns "".
func Along(input json.RawMessage, places [][]string, o Options, most int, estimate func(string) int) string {
	s := load(input, "Args")
	if s == nil || len(places) == 0 {
		return ""
	}
	w := way{left: maxSteps}
	s.root = &def{hint: "Args", body: w.along(s.root.body, places), done: true}
	nameShared(s, nil)
	for _, noDescriptions := range [...]bool{false, true} {
		p := &printer{o: o, noDescriptions: noDescriptions, limit: 16 * most}
		p.statements(s, map[*def]bool{})
		p.statement("Args", s.root.body)
		text := strings.TrimSuffix(string(p.b), "\n")
		if w.cut {
			text += inPart
		}
		if !p.over && estimate(text) <= most {
			return text
		}
	}
	const mark = ";" + inPart
	text := s.brief(most-8, mark, estimate)
	if text == "unknown"+mark || estimate(text) > most-8 {
		return ""
	}
	return "type Args = " + text
}

// way reduces a type to the parts on the way to the places (see [Along]).
type way struct {
	cut  bool // a part was left out
	left int  // how many more types may be visited; then the rest is kept as it is
}

// along returns t, reduced to the parts that lead to the places.
func (w *way) along(t *typ, places [][]string) *typ {
	w.left--
	by := make(map[string][][]string, len(places))
	for _, place := range places {
		if len(place) == 0 || w.left < 0 {
			return t // the path ends here, or no steps are left
		}
		by[place[0]] = append(by[place[0]], place[1:])
	}
	part := *t.body()
	if part.kind == tRef {
		part = *part.def.body
	}
	part.desc, part.notes = "", nil
	switch part.kind {
	case tObject:
		w.object(&part, by)
	case tArray:
		part.elem = w.along(part.elem, inside(by))
	case tUnion, tInter:
		w.members(&part, places)
	default:
		return t
	}
	return &part
}

// object removes from the object type t the properties with which no place begins. It keeps constants, since they distinguish the
// members of a union. by has the places, grouped by their first name, without this name. If t does not list such a name, object
// keeps the type that t has for other names or, if there is none, all properties.
func (w *way) object(t *typ, by map[string][][]string) {
	strange := maps.Clone(by)
	for _, q := range t.props {
		delete(strange, q.key)
	}
	all := len(strange) > 0 && (t.rest == nil || t.rest.kind == tUnknown)
	if len(strange) > 0 && !all {
		t.rest = w.along(t.rest, inside(strange))
	}
	var props []prop
	for _, q := range t.props {
		switch {
		case by[q.key] != nil:
			q.t = w.along(q.t, by[q.key])
		case all:
			q.t = q.t.withoutDocs()
		case q.t.body().kind != tLit:
			w.cut = true
			continue
		}
		props = append(props, q)
	}
	t.props = props
}

// inside returns all the places that by has, which are already without their first name or index.
func inside(by map[string][][]string) (places [][]string) {
	for _, step := range slices.Sorted(maps.Keys(by)) {
		places = append(places, by[step]...)
	}
	return places
}

// members removes from t, a union or an intersection, the members in whose values none of the places can exist. If that is true of
// all members, t stays as it is.
func (w *way) members(t *typ, places [][]string) {
	var members []*typ
	for _, m := range t.members {
		held := slices.DeleteFunc(slices.Clone(places), func(place []string) bool { return !w.holds(m, place[0]) })
		if len(held) > 0 {
			members = append(members, w.along(m, held))
		}
	}
	if len(members) > 0 {
		w.cut = w.cut || len(members) < len(t.members)
		t.members = members
	}
}

// holds reports whether values of type t may have a property of that name, or an array element at that index.
func (w *way) holds(t *typ, name string) bool {
	if w.left--; w.left < 0 {
		return false
	}
	t = t.body()
	if t.kind == tRef {
		t = t.def.body
	}
	switch t.kind {
	case tArray, tTuple:
		return name != "" && strings.Trim(name, "0123456789") == ""
	case tObject:
		return t.rest != nil || len(t.props) == 0 || slices.ContainsFunc(t.props, func(q prop) bool { return q.key == name })
	}
	return slices.ContainsFunc(t.members, func(m *typ) bool { return w.holds(m, name) })
}
