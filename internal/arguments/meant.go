package arguments

import (
	"maps"
	"slices"
)

// kind is an alternative of anyOf or oneOf for an object. Alternatives are often kinds of objects, told apart by a member such as
// "type", which must be one of some values.
type kind struct {
	cause  *fault
	values map[string]*literals // the members that must be one of some values
	wrong  map[string]bool      // those of them that are not, or are missing although they are required
}

const maxKinds = 100 // each is compared with each

// meant returns the causes of a fault of anyOf or oneOf, except those of kinds that the object does not say it is. If it is of none
// of the kinds, meant adds the violation itself, and returns nil: what else is wrong depends on the kind.
func (l *leaves) meant(f *fault) []*fault {
	kinds := l.kinds(f)
	var kept []kind
	for _, k := range kinds {
		other := func(o kind) bool {
			for name := range o.values {
				if k.wrong[name] && !o.wrong[name] {
					return true
				}
			}
			return false
		}
		if !slices.ContainsFunc(kinds, other) {
			kept = append(kept, k)
		}
	}
	switch {
	case len(kinds) < 2:
		return f.causes
	case len(kept) == 0:
		kept = kinds
	}
	for _, name := range slices.Sorted(maps.Keys(kept[0].wrong)) {
		if len(kept) > 1 && !slices.ContainsFunc(kept, func(k kind) bool { return !k.wrong[name] }) {
			l.unknownKind(member(f.at, name), name, kept)
			return nil
		}
	}
	var causes []*fault
	for _, k := range kept {
		causes = append(causes, k.cause)
	}
	return causes
}

// unknownKind adds the violation that a member has none of the values that tell kinds apart.
func (l *leaves) unknownKind(place []string, name string, kinds []kind) {
	if _, sent := at(l.value, place); !sent {
		l.put(place, "is missing")
		return
	}
	var values []any
	seen := make(map[string]bool)
	for _, k := range kinds {
		for _, value := range k.values[name].values {
			if id := key(value); !seen[id] {
				seen[id] = true
				values = append(values, value)
			}
		}
	}
	l.put(place, "must be "+alternatives(values))
}

// kinds returns the alternatives of anyOf or oneOf that allow an object, if f is the fault that an object fits none of them.
func (l *leaves) kinds(f *fault) (all []kind) {
	var alternatives []*schema
	switch f.keyword {
	case "anyOf":
		alternatives = f.schema.anyOf
	case "oneOf":
		alternatives = f.schema.oneOf
	}
	value, _ := at(l.value, f.at)
	object, ok := value.(map[string]any)
	null := func(cause *fault) bool { return cause.schema == onlyNull } // a cause beside those of the alternatives
	if !ok || len(alternatives) > maxKinds || len(alternatives) != len(f.causes) || slices.ContainsFunc(f.causes, null) {
		return nil
	}
	r := &l.reads
	for i, alternative := range alternatives {
		if r.kinds(alternative, 0)&kindObject == 0 {
			continue
		}
		k := kind{cause: f.causes[i], values: make(map[string]*literals), wrong: make(map[string]bool)}
		properties := r.properties(alternative, 0)
		for _, name := range slices.Sorted(maps.Keys(properties)) { // in order, as r has a bound
			values := r.literals(properties[name], 0)
			value, sent := object[name]
			if values == nil || !sent && !r.requires(alternative, name, 0) {
				continue
			}
			k.values[name] = values
			if !sent || !values.keys[l.key(member(f.at, name), value)] {
				k.wrong[name] = true
			}
		}
		all = append(all, k)
	}
	return all
}

// key returns the key of a member. It makes each key once: a value may be large, and many kinds are compared with it.
func (l *leaves) key(place []string, value any) string {
	at := path(place)
	k, made := l.keys[at]
	if !made {
		k = key(value)
		l.keys[at] = k
	}
	return k
}

// literals returns the values of const or enum, or nil if there are none.
func (r *repairer) literals(s *schema, depth int) *literals {
	switch {
	case !r.may(s, depth):
		return nil
	case s.constant != nil:
		return s.constant
	case s.enum != nil:
		return s.enum
	}
	for _, part := range slices.Concat(s.refs, s.allOf) {
		if values := r.literals(part, depth+1); values != nil {
			return values
		}
	}
	return nil
}

// requires reports whether an object must have a member.
func (r *repairer) requires(s *schema, name string, depth int) bool {
	switch {
	case !r.may(s, depth):
		return false
	case slices.Contains(s.required, name):
		return true
	}
	return slices.ContainsFunc(slices.Concat(s.refs, s.allOf), func(part *schema) bool { return r.requires(part, name, depth+1) })
}
