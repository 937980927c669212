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
// into the arguments: property names and array indexes, from the outside to the inside. If an object has neither a property
// with the name in the path nor a type for unlisted names, all its properties are written.
//
// The text has at most limit tokens, as counted by the function estimate. If it would be longer, Along leaves out the
// descriptions, then the deeper levels. If it still does not fit, Along returns "".
func Along(input json.RawMessage, places [][]string, o Options, limit int, estimate func(string) int) string {
	s := load(input, "Args")
	if s == nil || len(places) == 0 {
		return ""
	}
	r := reducer{left: maxSteps}
	s.root = &def{hint: "Args", body: r.along(s.root.body, places), done: true}
	nameShared(s, nil)
	for _, noDescriptions := range [...]bool{false, true} {
		p := &printer{o: o, noDescriptions: noDescriptions, limit: 16 * limit}
		p.statements(s, map[*def]bool{})
		p.statement("Args", s.root.body)
		text := strings.TrimSuffix(string(p.b), "\n")
		if r.cut {
			text += inPart
		}
		if !p.over && estimate(text) <= limit {
			return text
		}
	}
	const mark = ";" + inPart
	text := s.brief(limit-8, mark, estimate)
	if text == "unknown"+mark || estimate(text) > limit-8 {
		return ""
	}
	return "type Args = " + text
}

// reducer reduces a type to the parts that lead to the places (see [Along]).
type reducer struct {
	cut  bool // a part was left out
	left int  // how many more types may be visited; all further types are kept unchanged
}

// along returns t, reduced to the parts that lead to the places.
func (r *reducer) along(t *typ, places [][]string) *typ {
	r.left--
	groups := make(map[string][][]string, len(places))
	for _, place := range places {
		if len(place) == 0 || r.left < 0 {
			return t // the path ends here, or r.left is used up
		}
		groups[place[0]] = append(groups[place[0]], place[1:])
	}
	part := *t.body()
	if part.kind == tRef {
		part = *part.def.body
	}
	part.desc, part.notes = "", nil
	switch part.kind {
	case tObject:
		r.object(&part, groups)
	case tArray:
		part.elem = r.along(part.elem, inside(groups))
	case tUnion, tInter:
		r.members(&part, places)
	default:
		return t
	}
	return &part
}

// object removes from the object type t the properties to which no place leads. It keeps properties with a constant value, since
// they tell the members of a union apart. groups maps a name to the places that begin with it; each place there lacks this first
// name. If t does not list one of the names, object keeps the type that t has for unlisted names or, if t has no such type, all
// properties.
func (r *reducer) object(t *typ, groups map[string][][]string) {
	missing := maps.Clone(groups)
	for _, q := range t.props {
		delete(missing, q.key)
	}
	all := len(missing) > 0 && (t.rest == nil || t.rest.kind == tUnknown)
	if len(missing) > 0 && !all {
		t.rest = r.along(t.rest, inside(missing))
	}
	var props []prop
	for _, q := range t.props {
		switch {
		case groups[q.key] != nil:
			q.t = r.along(q.t, groups[q.key])
		case all:
			q.t = q.t.withoutDocs()
		case q.t.body().kind != tLit:
			r.cut = true
			continue
		}
		props = append(props, q)
	}
	t.props = props
}

// inside returns all places of all groups. In groups, each place already lacks its first name or index.
func inside(groups map[string][][]string) (places [][]string) {
	for _, step := range slices.Sorted(maps.Keys(groups)) {
		places = append(places, groups[step]...)
	}
	return places
}

// members removes members from t, which is a union or an intersection. A member is removed if none of the places can lead into its
// values. If all members would be removed, t stays as it is.
func (r *reducer) members(t *typ, places [][]string) {
	var members []*typ
	for _, m := range t.members {
		held := slices.DeleteFunc(slices.Clone(places), func(place []string) bool { return !r.holds(m, place[0]) })
		if len(held) > 0 {
			members = append(members, r.along(m, held))
		}
	}
	if len(members) > 0 {
		r.cut = r.cut || len(members) < len(t.members)
		t.members = members
	}
}

// holds reports whether values of type t may have a property of that name, or an array element at that index. It also returns false
// if r.left is used up.
func (r *reducer) holds(t *typ, name string) bool {
	if r.left--; r.left < 0 {
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
	return slices.ContainsFunc(t.members, func(m *typ) bool { return r.holds(m, name) })
}
