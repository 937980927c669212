package arguments

import (
	"encoding/json"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
)

// keywords reads the keywords of one schema. If one has a value of the wrong form, the document is broken.
type keywords struct {
	*compiler
	of   map[string]any
	path string
}

func (k *keywords) read(s *schema) {
	_, s.hasDefault = k.of["default"]
	s.nullable = k.of["nullable"] == true
	k.broken = k.broken || k.path != "" && k.isDocument(k.of)
	k.reference(s, "$ref", 4)
	if k.draft < 2019 && k.of["$ref"] != nil {
		return // the other keywords have no meaning
	}
	k.reference(s, "$recursiveRef", 2019)
	k.reference(s, "$dynamicRef", 2020)
	k.values(s)
	k.strings(s)
	k.object(s)
	k.array(s)
	s.allOf, s.anyOf, s.oneOf, s.not = k.list("allOf", 4), k.list("anyOf", 4), k.list("oneOf", 4), k.sub("not", 4)
	if s.condition = k.sub("if", 7); s.condition != nil {
		s.then, s.otherwise = k.sub("then", 7), k.sub("else", 7)
	}
}

func (k *keywords) reference(s *schema, keyword string, since int) {
	if value, ok := k.has(keyword, since); ok {
		ref, ok := value.(string)
		k.broken = k.broken || !ok
		k.open = append(k.open, reference{s, ref})
	}
}

func (k *keywords) values(s *schema) {
	if declared, ok := k.has("type", 4); ok {
		s.kinds = kindsOf(declared)
		k.broken = k.broken || s.kinds == 0 || !known(declared)
	}
	if value, ok := k.has("enum", 4); ok {
		list, _ := value.([]any)
		k.broken = k.broken || len(list) == 0 // no argument at all would fit an empty list
		s.enum = literally(list...)
	}
	if value, ok := k.has("const", 6); ok {
		s.constant = literally(value)
	}
	s.minimum, s.above = k.bound("minimum", "exclusiveMinimum")
	s.maximum, s.below = k.bound("maximum", "exclusiveMaximum")
	s.multipleOf = k.number("multipleOf")
	k.broken = k.broken || s.multipleOf != nil && s.multipleOf.Sign() <= 0
}

// known reports whether type names only types that there are.
func known(declared any) bool {
	list, ok := declared.([]any)
	if !ok {
		list = []any{declared}
	}
	for _, one := range list {
		if name, ok := one.(string); !ok || kindNames[name] == 0 {
			return false
		}
	}
	return true
}

func literally(values ...any) *literals {
	l := &literals{values: values, keys: make(map[string]bool, len(values))}
	for _, value := range values {
		l.keys[key(value)] = true
	}
	return l
}

func (k *keywords) strings(s *schema) {
	s.length = k.span("minLength", "maxLength", 4, s.length)
	_, s.unclear = k.has("format", 4)
	if value, ok := k.has("pattern", 4); ok {
		text, ok := value.(string)
		k.broken = k.broken || !ok
		s.pattern = k.pattern(text)
		s.unclear = s.unclear || s.pattern == nil
	}
}

func (k *keywords) object(s *schema) {
	s.propertyCount = k.span("minProperties", "maxProperties", 4, s.propertyCount)
	if list, ok := k.has("required", 4); ok {
		s.required = k.names(list)
	}
	s.properties = k.table("properties", 4)
	patterns := k.table("patternProperties", 4)
	for _, text := range slices.Sorted(maps.Keys(patterns)) {
		s.patterns = append(s.patterns, patternProperty{k.pattern(text), patterns[text]})
	}
	s.additional = k.sub("additionalProperties", 4)
	s.propertyNames = k.sub("propertyNames", 6)
	s.otherProperties = k.sub("unevaluatedProperties", 2019)
	s.dependents = k.table("dependentSchemas", 2019)
	needed := func(name string, names []string) {
		if s.neededBy == nil {
			s.neededBy = make(map[string][]string)
		}
		s.neededBy[name] = append(s.neededBy[name], names...)
	}
	for name, value := range k.members("dependentRequired", 2019) {
		needed(name, k.names(value))
	}
	for name, value := range k.members("dependencies", 4) {
		if _, ok := value.([]any); ok {
			needed(name, k.names(value))
			continue
		}
		if s.dependents == nil {
			s.dependents = make(map[string]*schema)
		}
		s.dependents[name] = k.schema(value, k.path+"/dependencies/"+pointerEscapes.Replace(name))
	}
}

func (k *keywords) array(s *schema) {
	s.itemCount = k.span("minItems", "maxItems", 4, s.itemCount)
	unique, ok := k.has("uniqueItems", 4)
	s.uniqueItems = unique == true
	_, isBool := unique.(bool)
	k.broken = k.broken || ok && !isBool
	if _, ok := k.of["items"].([]any); ok {
		s.prefixItems, s.items = k.list("items", 4), k.sub("additionalItems", 4)
	} else {
		s.prefixItems, s.items = k.list("prefixItems", 2020), k.sub("items", 4)
	}
	s.otherItems = k.sub("unevaluatedItems", 2019)
	if s.contains = k.sub("contains", 6); s.contains != nil {
		s.containsCount = k.span("minContains", "maxContains", 2019, s.containsCount)
	}
}

// has returns the value of a keyword that there is since a draft.
func (k *keywords) has(keyword string, since int) (value any, ok bool) {
	value, ok = k.of[keyword]
	return value, ok && k.draft >= since
}

func (k *keywords) sub(keyword string, since int) *schema {
	value, ok := k.has(keyword, since)
	if !ok {
		return nil
	}
	return k.schema(value, k.path+"/"+keyword)
}

func (k *keywords) list(keyword string, since int) (all []*schema) {
	value, ok := k.has(keyword, since)
	if !ok {
		return nil
	}
	list, _ := value.([]any)
	k.broken = k.broken || len(list) == 0
	for i, sub := range list {
		if k.broken {
			break
		}
		all = append(all, k.schema(sub, k.path+"/"+keyword+"/"+strconv.Itoa(i)))
	}
	return all
}

// members returns the members of a keyword that is an object.
func (k *keywords) members(keyword string, since int) map[string]any {
	value, ok := k.has(keyword, since)
	if !ok {
		return nil
	}
	members, ok := value.(map[string]any)
	k.broken = k.broken || !ok
	return members
}

func (k *keywords) table(keyword string, since int) map[string]*schema {
	members := k.members(keyword, since)
	if members == nil {
		return nil
	}
	all := make(map[string]*schema, len(members))
	for name, sub := range members {
		if k.broken {
			break
		}
		all[name] = k.schema(sub, k.path+"/"+keyword+"/"+pointerEscapes.Replace(name))
	}
	return all
}

// names reads a list of names of properties.
func (k *keywords) names(value any) (all []string) {
	list, ok := value.([]any)
	k.broken = k.broken || !ok
	for _, one := range list {
		name, ok := one.(string)
		k.broken = k.broken || !ok
		all = append(all, name)
	}
	return all
}

func (k *keywords) number(keyword string) *big.Rat {
	value, ok := k.of[keyword]
	if !ok {
		return nil
	}
	if number, ok := value.(json.Number); ok {
		return rational(number)
	}
	k.broken = true
	return nil
}

// bound reads a bound of numbers. In draft 4, the keyword exclusive is a boolean.
func (k *keywords) bound(keyword, exclusive string) (inclusive, exclusively *big.Rat) {
	inclusive = k.number(keyword)
	switch flag, isBool := k.of[exclusive].(bool); {
	case isBool && flag:
		return nil, inclusive
	case isBool:
		return inclusive, nil
	}
	return inclusive, k.number(exclusive)
}

// span reads the bounds of a count. A missing bound stays as it is in missing.
func (k *keywords) span(least, most string, since int, missing span) span {
	for keyword, bound := range map[string]*int{least: &missing.least, most: &missing.most} {
		if _, ok := k.has(keyword, since); !ok {
			continue
		}
		switch number := k.number(keyword); {
		case number == nil || !number.IsInt() || number.Sign() < 0:
			k.broken = true
		case number.Num().IsInt64():
			*bound = int(number.Num().Int64())
		default:
			*bound = math.MaxInt
		}
	}
	return missing
}
