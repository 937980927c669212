package arguments

import (
	"math"
	"math/big"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// quick is a plain schema: types, properties, required, enumerations of strings,
// bounds and lengths, items, anyOf, allOf and references. It reads raw JSON once
// and only ever says that a value fits. All that it does not know, and every
// violation, is left to the library. A fuzz test holds it against that.
//
// [repair] changes nothing in what fits here: no string in it begins like JSON.
type quick struct {
	kinds kinds // that fit
	// literals, if not nil, are the only strings that fit.
	literals map[string]bool
	// least and most bound whole numbers, above and below fractions.
	bounded      bool
	least, most  int64
	above, below float64
	leastLength  int // of strings, in characters; 0 = any
	mostLength   int // -1 = any
	leastItems   int
	mostItems    int    // -1 = any
	items        *quick // nil = all values
	properties   map[string]property
	required     uint64   // the bits of the properties that must be there
	closed       bool     // no other properties
	additional   *quick   // what other properties fit; nil = all values
	all          []*quick // the value must fit each of them
	any          []*quick // and, if there are some, one of these
}

// property is what a member of an object fits; its bit is 0 where it need not be
// there.
type property struct {
	value *quick // nil = all values
	bit   uint64
}

// quickly makes the plain form of a compiled schema; nil where it is not plain.
func quickly(schema *jsonschema.Schema) *quick {
	return (&quickener{made: make(map[*jsonschema.Schema]*quick)}).of(schema)
}

// quickener remembers what it has made: schemas can refer to themselves.
type quickener struct{ made map[*jsonschema.Schema]*quick }

var (
	// anything is a schema that says nothing.
	anything = quick{kinds: anyKind, mostLength: -1, mostItems: -1}
	// nothing stands for what the library has to judge.
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
	q := &quick{kinds: anyKind, mostLength: -1, mostItems: -1}
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
		q.leastLength = *s.MinLength
	}
	if s.MaxLength != nil {
		q.mostLength = *s.MaxLength
	}
	if s.MinItems != nil {
		q.leastItems = *s.MinItems
	}
	if s.MaxItems != nil {
		q.mostItems = *s.MaxItems
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

// isPlain reports whether a schema has no keyword that quick does not know. The
// library has taken out the keywords that its draft ignores.
func isPlain(s *jsonschema.Schema) bool {
	_, itemList := s.Items.([]*jsonschema.Schema)
	switch {
	case s.Bool != nil,
		s.RecursiveRef != nil, s.DynamicRef != nil,
		s.Not != nil, len(s.OneOf) > 0, s.If != nil, s.Then != nil, s.Else != nil, s.Format != nil,
		s.MaxProperties != nil, s.MinProperties != nil, s.PropertyNames != nil, len(s.PatternProperties) > 0,
		len(s.Dependencies) > 0, len(s.DependentRequired) > 0, len(s.DependentSchemas) > 0, s.UnevaluatedProperties != nil,
		s.UniqueItems, s.Contains != nil, s.MinContains != nil, s.MaxContains != nil, itemList,
		s.AdditionalItems != nil, len(s.PrefixItems) > 0, s.UnevaluatedItems != nil,
		s.Pattern != nil, s.ContentEncoding != nil, s.ContentMediaType != nil, s.ContentSchema != nil,
		s.MultipleOf != nil, len(s.Extensions) > 0:
		return false
	}
	return true
}

// enumeration takes the strings of enum and const; other values of theirs are left
// to the library.
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

// bounds takes the bounds of numbers, where they are whole. A bound that excludes
// itself is one narrower for whole numbers; fractions must be strictly inside
// either.
func (q *quick) bounds(s *jsonschema.Schema) bool {
	q.least, q.most = math.MinInt64, math.MaxInt64
	q.above, q.below = math.Inf(-1), math.Inf(1)
	lower, lowerOK := wholeBound(s.Minimum)
	over, overOK := wholeBound(s.ExclusiveMinimum)
	upper, upperOK := wholeBound(s.Maximum)
	under, underOK := wholeBound(s.ExclusiveMaximum)
	if lower != nil {
		q.least, q.above = *lower, float64(*lower)
	}
	if over != nil {
		q.least, q.above = max(q.least, *over+1), max(q.above, float64(*over))
	}
	if upper != nil {
		q.most, q.below = *upper, float64(*upper)
	}
	if under != nil {
		q.most, q.below = min(q.most, *under-1), min(q.below, float64(*under))
	}
	q.bounded = lower != nil || over != nil || upper != nil || under != nil
	return lowerOK && overOK && upperOK && underOK
}

// wholeBound is a bound that a float64 holds exactly; nil where there is none.
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

// object takes what a schema says of members.
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
		if !ok {
			if q.closed || q.additional != nil {
				return false // it is missing, or one of the others
			}
		}
		p.bit |= 1 << i
		q.required |= 1 << i
		q.properties[name] = p
	}
	return true
}

// fits reports whether raw is one JSON value that surely fits.
func (q *quick) fits(raw []byte) bool {
	if q == nil {
		return false
	}
	r := quickReader{raw: raw, left: 8*len(raw) + 1000}
	end, ok := r.value(q, r.space(0), 0)
	return ok && r.space(end) == len(raw)
}

// quickReader reads one text. Its methods take the place where something begins
// and return the one behind it; ok is false for all that may not fit.
type quickReader struct {
	raw  []byte
	left int // bytes that may still be read: parts of anyOf read them again
}

func (r *quickReader) space(i int) int {
	for i < len(r.raw) && (r.raw[i] == ' ' || r.raw[i] == '\n' || r.raw[i] == '\t' || r.raw[i] == '\r') {
		i++
	}
	return i
}

// value reads a value; depth counts its nesting, and that of the schema's parts.
func (r *quickReader) value(q *quick, i, depth int) (end int, ok bool) {
	if q == nil {
		q = &anything
	}
	if r.left--; i >= len(r.raw) || depth > maxDepth || r.left < 0 {
		return 0, false
	}
	switch r.raw[i] {
	case '{':
		if q.kinds&kindObject != 0 && depth < maxDepth {
			end, ok = r.object(q, i, depth)
		}
	case '[':
		if q.kinds&kindArray != 0 && depth < maxDepth {
			end, ok = r.array(q, i, depth)
		}
	case '"':
		if q.kinds&kindString != 0 {
			end, ok = r.text(q, i)
		}
	case 't':
		end, ok = r.word(i, "true"), q.kinds&kindBoolean != 0
	case 'f':
		end, ok = r.word(i, "false"), q.kinds&kindBoolean != 0
	case 'n':
		end, ok = r.word(i, "null"), q.kinds&kindNull != 0
	default:
		end, ok = r.number(q, i)
	}
	r.left -= end - i
	if !ok || end < 0 {
		return 0, false
	}
	for _, part := range q.all {
		if _, ok := r.value(part, i, depth+1); !ok {
			return 0, false
		}
	}
	for _, part := range q.any {
		if _, ok := r.value(part, i, depth+1); ok {
			return end, true
		}
	}
	return end, len(q.any) == 0
}

// word is behind a keyword; -1 where there is another.
func (r *quickReader) word(i int, word string) int {
	if end := i + len(word); end <= len(r.raw) && string(r.raw[i:end]) == word {
		return end
	}
	return -1
}

func (r *quickReader) object(q *quick, i, depth int) (end int, ok bool) {
	seen := uint64(0)
	if i = r.space(i + 1); i < len(r.raw) && r.raw[i] == '}' {
		return i + 1, q.required == 0
	}
	for {
		if i >= len(r.raw) || r.raw[i] != '"' {
			return 0, false
		}
		keyEnd, simple, ok := r.quoted(i)
		if !ok || !simple {
			return 0, false
		}
		key := r.raw[i+1 : keyEnd-1]
		p, known := q.properties[string(key)]
		if !known {
			// Of what is no ASCII, several texts can be one key.
			if q.closed || !ascii(key) {
				return 0, false
			}
			p.value = q.additional
		}
		seen |= p.bit
		if i = r.space(keyEnd); i >= len(r.raw) || r.raw[i] != ':' {
			return 0, false
		}
		if i, ok = r.value(p.value, r.space(i+1), depth+1); !ok {
			return 0, false
		}
		if i = r.space(i); i >= len(r.raw) {
			return 0, false
		}
		switch r.raw[i] {
		case ',':
			i = r.space(i + 1)
		case '}':
			return i + 1, seen&q.required == q.required
		default:
			return 0, false
		}
	}
}

func ascii(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func (r *quickReader) array(q *quick, i, depth int) (end int, ok bool) {
	if i = r.space(i + 1); i < len(r.raw) && r.raw[i] == ']' {
		return i + 1, q.leastItems <= 0
	}
	for n := 1; ; n++ {
		if i, ok = r.value(q.items, i, depth+1); !ok {
			return 0, false
		}
		if i = r.space(i); i >= len(r.raw) {
			return 0, false
		}
		switch r.raw[i] {
		case ',':
			i = r.space(i + 1)
		case ']':
			return i + 1, n >= q.leastItems && (q.mostItems < 0 || n <= q.mostItems)
		default:
			return 0, false
		}
	}
}

// maxEscape is how long one character is written at most: \uXXXX\uXXXX.
const maxEscape = 12

// text reads a string. One that begins like JSON, or with white space or an
// escape, may be for [repair].
func (r *quickReader) text(q *quick, i int) (end int, ok bool) {
	end, simple, ok := r.quoted(i)
	if !ok {
		return 0, false
	}
	inner := r.raw[i+1 : end-1]
	if len(inner) > 0 {
		switch first, _ := utf8.DecodeRune(inner); {
		case first == '{', first == '[', first == '\\', unicode.IsSpace(first):
			return 0, false
		}
	}
	if q.literals != nil {
		return end, simple && q.literals[string(inner)]
	}
	if q.leastLength <= 0 && q.mostLength < 0 {
		return end, true
	}
	most := utf8.RuneCount(inner)
	least := most
	if !simple {
		least = (len(inner) + maxEscape - 1) / maxEscape
	}
	return end, least >= q.leastLength && (q.mostLength < 0 || most <= q.mostLength)
}

// quoted reads a string of valid JSON; simple says that it has no escapes.
func (r *quickReader) quoted(i int) (end int, simple, ok bool) {
	simple = true
	for i++; i < len(r.raw); i++ {
		switch c := r.raw[i]; {
		case c == '"':
			return i + 1, simple, true
		case c < ' ':
			return 0, false, false
		case c == '\\':
			simple = false
			if i++; i >= len(r.raw) {
				return 0, false, false
			}
			switch r.raw[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if i++; i >= len(r.raw) || !hexDigit(r.raw[i]) {
						return 0, false, false
					}
				}
			default:
				return 0, false, false
			}
		}
	}
	return 0, false, false
}

func hexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

// maxQuickNumber is how long a number may be: a whole one is an int64.
const maxQuickNumber = 18

// number reads a number without an exponent.
func (r *quickReader) number(q *quick, i int) (end int, ok bool) {
	start := i
	if r.raw[i] == '-' {
		i++
	}
	whole := i
	i = r.digits(i)
	if i == whole || i > whole+1 && r.raw[whole] == '0' {
		return 0, false
	}
	fraction := i < len(r.raw) && r.raw[i] == '.'
	if fraction {
		point := i
		if i = r.digits(point + 1); i == point+1 {
			return 0, false
		}
	}
	if i < len(r.raw) && r.raw[i]|0x20 == 'e' || i-start > maxQuickNumber {
		return 0, false
	}
	if fraction {
		if q.kinds&kindFraction == 0 {
			return 0, false // also 1.0, which is an integer
		}
		if !q.bounded {
			return i, true
		}
		// Rounding keeps the order, and the bounds are exact.
		f, err := strconv.ParseFloat(string(r.raw[start:i]), 64)
		return i, err == nil && f > q.above && f < q.below
	}
	if q.kinds&kindInteger == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(r.raw[start:i]), 10, 64)
	return i, err == nil && (!q.bounded || n >= q.least && n <= q.most)
}

func (r *quickReader) digits(i int) int {
	for i < len(r.raw) && r.raw[i] >= '0' && r.raw[i] <= '9' {
		i++
	}
	return i
}
