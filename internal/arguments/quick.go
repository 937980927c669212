package arguments

import (
	"math"
	"math/big"
	"slices"
)

// quick is a fast form of a schema that has only common keywords: types, properties, required, enumerations of strings, bounds and
// lengths, items, anyOf, allOf and references. With it, raw JSON is checked in one pass. If that does not show that a value
// fits, the evaluation of the whole schema decides. Fuzz tests compare the two.
//
// A value that fits a quick form contains no string that begins like JSON, so [repair] would not change the value.
type quick struct {
	kinds kinds // the types that a value may have
	// literals, if not nil, are the only strings that fit.
	literals map[string]bool
	// If bounded is set, whole numbers must be from minimum to maximum, and fractions must be greater than floor and less than
	// ceiling.
	bounded          bool
	minimum, maximum int64
	floor, ceiling   float64
	nullable         bool   // null fits, whatever the other fields say
	length           span   // of strings, in characters
	itemCount        span   // of arrays
	items            *quick // nil means that all values fit
	properties       map[string]property
	required         uint64   // the bits of the required properties
	closed           bool     // no other properties are allowed
	additional       *quick   // the schema for other properties; nil means that all values fit
	all              []*quick // the value must fit each of these schemas
	any              []*quick // if not empty, the value must fit one of these schemas
}

// property is the schema of a member of an object.
type property struct {
	value *quick // nil means that all values fit
	bit   uint64 // the bit of the property in required; 0 if it is optional
}

// quickly makes the quick form of a compiled schema.
func quickly(s *schema) *quick {
	return (&quickener{made: make(map[*schema]*quick)}).of(s)
}

// quickener makes quick forms. It remembers those that it has made, since schemas can refer to themselves.
type quickener struct{ made map[*schema]*quick }

var (
	// anything is the quick form of an empty schema, which allows all values.
	anything = quick{kinds: anyKind, length: anyCount, itemCount: anyCount}
	// nothing is the quick form of a schema that has other keywords. The form allows no value, so the long way
	// is asked about each value.
	nothing quick
)

func (b *quickener) of(s *schema) *quick {
	switch {
	case s.boolean != nil && *s.boolean:
		return &anything
	case !s.isPlain():
		return &nothing
	case b.made[s] != nil:
		return b.made[s]
	}
	q := &quick{kinds: s.kinds, nullable: s.nullable, length: s.length, itemCount: s.itemCount}
	b.made[s] = q
	if !q.enumeration(s) || !q.bounds(s) || !b.object(q, s) {
		*q = nothing
		return q
	}
	if s.items != nil {
		q.items = b.of(s.items)
	}
	for _, part := range slices.Concat(s.refs, s.allOf) {
		q.all = append(q.all, b.of(part))
	}
	for _, part := range s.anyOf {
		q.any = append(q.any, b.of(part))
	}
	return q
}

// isPlain reports whether quick knows all keywords of a schema.
func (s *schema) isPlain() bool {
	unknown := s.boolean != nil || s.not != nil || len(s.oneOf) > 0 || s.condition != nil || s.propertyCount != anyCount ||
		s.propertyNames != nil || len(s.patterns) > 0 || len(s.neededBy) > 0 || len(s.dependents) > 0 || s.uniqueItems ||
		s.contains != nil || len(s.prefixItems) > 0 || s.otherItems != nil || s.otherProperties != nil || s.pattern != nil ||
		s.multipleOf != nil
	return !unknown
}

// enumeration reads the strings of enum and const; other values are checked the long way. It returns false if
// quick cannot be used at all.
func (q *quick) enumeration(s *schema) bool {
	allowed := s.enum
	switch {
	case s.constant != nil && s.enum != nil:
		return false
	case s.constant != nil:
		allowed = s.constant
	case s.enum == nil:
		return true
	}
	q.literals = make(map[string]bool, len(allowed.values))
	for _, value := range allowed.values {
		if text, ok := value.(string); ok {
			q.literals[text] = true
		}
	}
	q.kinds &= kindString
	return q.kinds != 0
}

// bounds reads the bounds of numbers if they are whole. For whole numbers, an exclusive bound is replaced by the
// next number. Fractions must lie strictly inside the bounds, whether these are exclusive or not.
func (q *quick) bounds(s *schema) bool {
	q.minimum, q.maximum = math.MinInt64, math.MaxInt64
	q.floor, q.ceiling = math.Inf(-1), math.Inf(1)
	lower, lowerOK := wholeBound(s.minimum)
	over, overOK := wholeBound(s.above)
	upper, upperOK := wholeBound(s.maximum)
	under, underOK := wholeBound(s.below)
	if lower != nil {
		q.minimum, q.floor = *lower, float64(*lower)
	}
	if over != nil {
		q.minimum, q.floor = max(q.minimum, *over+1), max(q.floor, float64(*over))
	}
	if upper != nil {
		q.maximum, q.ceiling = *upper, float64(*upper)
	}
	if under != nil {
		q.maximum, q.ceiling = min(q.maximum, *under-1), min(q.ceiling, float64(*under))
	}
	q.bounded = lower != nil || over != nil || upper != nil || under != nil
	return lowerOK && overOK && upperOK && underOK
}

// wholeBound returns a bound as an integer, or nil if there is none. ok is false if the bound is no integer, or is too large
// for a float64 to hold it exactly.
func wholeBound(bound *big.Rat) (n *int64, ok bool) {
	if bound == nil {
		return nil, true
	}
	if !bound.IsInt() || bound.Num().BitLen() > 52 {
		return nil, false
	}
	whole := bound.Num().Int64()
	return &whole, true
}

// object reads the keywords for the members of objects. It returns false if quick cannot be used at all.
func (b *quickener) object(q *quick, s *schema) bool {
	switch {
	case s.additional == nil:
	case s.additional.isFalse():
		q.closed = true
	default:
		q.additional = b.of(s.additional)
	}
	required := slices.DeleteFunc(slices.Clone(s.required), func(name string) bool { return s.properties[name].optional() })
	if len(s.properties)+len(required) == 0 {
		return true
	}
	if len(required) > 64 {
		return false
	}
	q.properties = make(map[string]property, len(s.properties))
	for name, sub := range s.properties {
		q.properties[name] = property{value: b.of(sub)}
	}
	for i, name := range required {
		p, ok := q.properties[name]
		if !ok && (q.closed || q.additional != nil) {
			return false // this name is declared only by additionalProperties, so the long way must decide
		}
		p.bit |= 1 << i
		q.required |= 1 << i
		q.properties[name] = p
	}
	return true
}
