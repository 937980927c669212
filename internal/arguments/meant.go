package arguments

import (
	"maps"
	"slices"
)

// variant is an alternative of anyOf or oneOf for an object. Alternatives are often told apart by a member such as "type", which must
// be one of some values.
type variant struct {
	cause  *fault
	values map[string]*literals // the members that must be one of some values
	wrong  map[string]bool      // those of them that are not, or are missing although they are required
}

const maxVariants = 100 // each is compared with each

// meant returns the causes of a fault. Of anyOf and oneOf it leaves out those of variants that the object does not say it is. If it says
// it is none of them, meant adds the violation itself, and returns nil: what else is wrong depends on the variant.
func (l *leaves) meant(f *fault) []*fault {
	all := l.variants(f)
	if len(all) < 2 {
		return f.causes
	}
	var kept []variant
	for _, v := range all {
		rather := func(other variant) bool { // a member says that it is other, and not v
			for name := range other.values {
				if v.wrong[name] && !other.wrong[name] {
					return true
				}
			}
			return false
		}
		if !slices.ContainsFunc(all, rather) {
			kept = append(kept, v)
		}
	}
	if len(kept) == 0 { // the members contradict each other
		kept = all
	}
	for _, name := range slices.Sorted(maps.Keys(kept[0].wrong)) {
		if len(kept) > 1 && !slices.ContainsFunc(kept, func(v variant) bool { return !v.wrong[name] }) {
			l.unknownVariant(member(f.at, name), name, kept)
			return nil
		}
	}
	var causes []*fault
	for _, v := range kept {
		causes = append(causes, v.cause)
	}
	return causes
}

// unknownVariant adds the violation that a member has none of the values that tell variants apart.
func (l *leaves) unknownVariant(place []string, name string, all []variant) {
	if _, sent := at(l.value, place); !sent {
		l.put(place, "is missing")
		return
	}
	var values []any
	seen := make(map[string]bool)
	for _, v := range all {
		for _, value := range v.values[name].values {
			if id := key(value); !seen[id] {
				seen[id] = true
				values = append(values, value)
			}
		}
	}
	l.put(place, "must be "+alternatives(values))
}

// variants returns the alternatives of anyOf or oneOf that allow an object, if f is the fault that an object fits none of them.
func (l *leaves) variants(f *fault) (all []variant) {
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
	if !ok || len(alternatives) > maxVariants || len(alternatives) != len(f.causes) || slices.ContainsFunc(f.causes, null) {
		return nil
	}
	r := &l.reads
	for i, alternative := range alternatives {
		if r.kinds(alternative, 0)&kindObject == 0 {
			continue
		}
		v := variant{cause: f.causes[i], values: make(map[string]*literals), wrong: make(map[string]bool)}
		properties := r.properties(alternative, 0)
		for _, name := range slices.Sorted(maps.Keys(properties)) { // in order, as r has a bound
			values := r.literals(properties[name], 0)
			value, sent := object[name]
			if values == nil || !sent && !r.requires(alternative, name, 0) {
				continue
			}
			v.values[name] = values
			if !sent || !values.keys[l.key(member(f.at, name), value)] {
				v.wrong[name] = true
			}
		}
		all = append(all, v)
	}
	return all
}

// key returns the key of a member. It makes each key once: a value may be large, and many variants are compared with it.
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
