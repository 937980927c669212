package arguments

import (
	"math"
	"math/big"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// quick is a fast form of a schema that has only common keywords: types, properties, required, enumerations of strings, bounds and
// lengths, items, anyOf, allOf and references. With it, raw JSON is checked in one pass. If that does not show that a value
// fits, the JSON Schema library decides. Fuzz tests compare the two.
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
	minLength        int // of strings, in characters; 0 means any length
	maxLength        int // of strings, in characters; -1 means any length
	minItems         int
	maxItems         int    // -1 means any number of items
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
func quickly(schema *jsonschema.Schema) *quick {
	return (&quickener{made: make(map[*jsonschema.Schema]*quick)}).of(schema)
}

// quickener makes quick forms. It remembers those that it has made, since schemas can refer to themselves.
type quickener struct{ made map[*jsonschema.Schema]*quick }

var (
	// anything is the quick form of an empty schema, which allows all values.
	anything = quick{kinds: anyKind, maxLength: -1, maxItems: -1}
	// nothing is the quick form of a schema that only the JSON Schema library can check. The form allows no value, so the library
	// is asked about each value.
	nothing quick
)

func (b *quickener) of(s *jsonschema.Schema) *quick {
	switch {
	case s.Bool != nil && *s.Bool:
		return &anything
	case !isPlain(s):
		return &nothing
	case b.made[s] != nil:
		return b.made[s]
	}
	q := &quick{kinds: anyKind, maxLength: -1, maxItems: -1}
	b.made[s] = q
	if s.Types != nil && !s.Types.IsEmpty() {
		q.kinds = 0
		for _, name := range s.Types.ToStrings() {
			q.kinds |= kindNames[name]
		}
	}
	if !q.enumeration(s) || !q.bounds(s) || !b.object(q, s) {
		*q = nothing
		return q
	}
	if s.MinLength != nil {
		q.minLength = *s.MinLength
	}
	if s.MaxLength != nil {
		q.maxLength = *s.MaxLength
	}
	if s.MinItems != nil {
		q.minItems = *s.MinItems
	}
	if s.MaxItems != nil {
		q.maxItems = *s.MaxItems
	}
	if items, ok := s.Items.(*jsonschema.Schema); ok {
		q.items = b.of(items)
	} else if s.Items2020 != nil {
		q.items = b.of(s.Items2020)
	}
	if s.Ref != nil {
		q.all = append(q.all, b.of(s.Ref))
	}
	for _, part := range s.AllOf {
		q.all = append(q.all, b.of(part))
	}
	for _, part := range s.AnyOf {
		q.any = append(q.any, b.of(part))
	}
	return q
}

// isPlain reports whether quick knows all keywords of a schema. Keywords that the draft of the schema ignores do not matter: the
// library has removed them.
func isPlain(s *jsonschema.Schema) bool {
	_, itemList := s.Items.([]*jsonschema.Schema)
	unknown := s.Bool != nil || s.RecursiveRef != nil || s.DynamicRef != nil ||
		s.Not != nil || len(s.OneOf) > 0 || s.If != nil || s.Then != nil || s.Else != nil ||
		s.MaxProperties != nil || s.MinProperties != nil || s.PropertyNames != nil || len(s.PatternProperties) > 0 ||
		len(s.Dependencies) > 0 || len(s.DependentRequired) > 0 || len(s.DependentSchemas) > 0 ||
		s.UniqueItems || s.Contains != nil || s.MinContains != nil || s.MaxContains != nil || itemList ||
		s.AdditionalItems != nil || len(s.PrefixItems) > 0 || s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil ||
		s.Pattern != nil || s.Format != nil || s.ContentEncoding != nil || s.ContentMediaType != nil ||
		s.ContentSchema != nil || s.MultipleOf != nil || len(s.Extensions) > 0
	return !unknown
}

// enumeration reads the strings of enum and const; other values are checked by the library. It returns false if
// quick cannot be used at all.
func (q *quick) enumeration(s *jsonschema.Schema) bool {
	var values []any
	switch {
	case s.Const != nil && s.Enum != nil:
		return false
	case s.Const != nil:
		values = []any{*s.Const}
	case s.Enum != nil:
		values = s.Enum.Values
	default:
		return true
	}
	q.literals = make(map[string]bool, len(values))
	for _, value := range values {
		if text, ok := value.(string); ok {
			q.literals[text] = true
		}
	}
	q.kinds &= kindString
	return q.kinds != 0
}

// bounds reads the bounds of numbers if they are whole. For whole numbers, an exclusive bound is replaced by the
// next number. Fractions must lie strictly inside the bounds, whether these are exclusive or not.
func (q *quick) bounds(s *jsonschema.Schema) bool {
	q.minimum, q.maximum = math.MinInt64, math.MaxInt64
	q.floor, q.ceiling = math.Inf(-1), math.Inf(1)
	lower, lowerOK := wholeBound(s.Minimum)
	over, overOK := wholeBound(s.ExclusiveMinimum)
	upper, upperOK := wholeBound(s.Maximum)
	under, underOK := wholeBound(s.ExclusiveMaximum)
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
func (b *quickener) object(q *quick, s *jsonschema.Schema) bool {
	switch additional := s.AdditionalProperties.(type) {
	case bool:
		q.closed = !additional
	case *jsonschema.Schema:
		q.additional = b.of(additional)
	}
	if len(s.Properties)+len(s.Required) == 0 {
		return true
	}
	if len(s.Required) > 64 {
		return false
	}
	q.properties = make(map[string]property, len(s.Properties))
	for name, sub := range s.Properties {
		q.properties[name] = property{value: b.of(sub)}
	}
	for i, name := range s.Required {
		p, ok := q.properties[name]
		if !ok && (q.closed || q.additional != nil) {
			return false // this name is declared only by additionalProperties, so the library must decide
		}
		p.bit |= 1 << i
		q.required |= 1 << i
		q.properties[name] = p
	}
	return true
}
