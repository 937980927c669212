package schemats

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// inPart says that a type is not all there is.
const inPart = " // in part"

// Along is what [Declaration] writes of an input, but only what leads to some places
// and stands there, in at most that many tokens as estimate counts them: without the
// descriptions if they are too many, then without the deeper levels; "" where nothing
// fits. A place is the path of a value: names and indices. Of an object without such a
// name all names are written.
func Along(input json.RawMessage, places [][]string, o Options, most int, estimate func(string) int) string {
	s := load(input, "Args")
	if s == nil || len(places) == 0 {
		return ""
	}
	w := way{left: maxSteps}
	s.root = &def{hint: "Args", body: w.along(s.root.body, places), done: true}
	names := newSharing()
	names.add(s, true)
	names.name()
	for _, o.Descriptions = range [...]bool{o.Descriptions, false} {
		p := &printer{o: o, limit: 16 * most}
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

// way makes a type of the parts of a type that lead to some places.
type way struct {
	cut  bool // something was left out
	left int  // steps
}

// along is t without what does not lead to the places.
func (w *way) along(t *typ, places [][]string) *typ {
	w.left--
	by := make(map[string][][]string, len(places))
	for _, place := range places {
		if len(place) == 0 || w.left < 0 {
			return t // it stands here
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

// object leaves the properties of t that places begin with, and constants, which tell
// alternatives apart. What is no property is looked for in the type of further keys; if
// there is none, all properties stay.
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

// inside are places by their first step, without it.
func inside(by map[string][][]string) (places [][]string) {
	for _, step := range slices.Sorted(maps.Keys(by)) {
		places = append(places, by[step]...)
	}
	return places
}

// members leaves the members of a union or intersection that may hold some place.
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

// holds reports whether values of t may have a member of that name, or an item.
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
		for _, q := range t.props {
			if q.key == name {
				return true
			}
		}
		return t.rest != nil || len(t.props) == 0
	}
	for _, m := range t.members {
		if w.holds(m, name) {
			return true
		}
	}
	return false
}
