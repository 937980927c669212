package arguments

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// schema is a compiled JSON Schema, or a part of one. Its fields are keywords. A keyword that is missing, or that the draft does
// not have, has the zero value, unless a comment says otherwise.
type schema struct {
	boolean *bool // set for the schemas true and false, which have no keywords

	kinds          kinds // type; anyKind if it is missing
	enum, constant *literals
	numberKeywords
	stringKeywords
	objectKeywords
	arrayKeywords
	combinedKeywords

	hasDefault bool
	// nullable is no keyword of JSON Schema, but of OpenAPI. inspect shows it, and a null may be what the call is about, such as
	// one that clears the milestone of an issue.
	nullable bool
}

type numberKeywords struct {
	minimum, maximum *big.Rat
	above, below     *big.Rat // exclusiveMinimum and exclusiveMaximum
	multipleOf       *big.Rat
}

type stringKeywords struct {
	length  span // minLength and maxLength
	pattern *pattern
	// unclear means that strings may not fit although all other keywords say so: the schema has a format, or a pattern that no
	// engine takes. A format is never checked, because servers do not accept what its RFC says: zod declares z.string().time() as
	// the format "time", and accepts only times without a zone.
	unclear bool
}

type objectKeywords struct {
	propertyCount   span // minProperties and maxProperties
	required        []string
	neededBy        map[string][]string // dependentRequired, and dependencies with lists
	dependents      map[string]*schema  // dependentSchemas, and dependencies with schemas
	properties      map[string]*schema
	patterns        []patternProperty // patternProperties
	additional      *schema           // additionalProperties
	otherProperties *schema           // unevaluatedProperties
	propertyNames   *schema
}

type arrayKeywords struct {
	itemCount     span // minItems and maxItems
	uniqueItems   bool
	prefixItems   []*schema // also a list of items
	items         *schema   // for the items after prefixItems; also additionalItems
	otherItems    *schema   // unevaluatedItems
	contains      *schema
	containsCount span // minContains, which is 1 if missing, and maxContains
}

// combinedKeywords have schemas for the same value.
type combinedKeywords struct {
	refs                []*schema // the schemas to which $ref, $recursiveRef and $dynamicRef lead
	allOf, anyOf, oneOf []*schema
	not                 *schema
	condition           *schema // if
	then, otherwise     *schema // then and else; nil without a condition
}

// span has the bounds of a count. most is math.MaxInt if there is no upper bound.
type span struct{ least, most int }

// anyCount are the bounds of a count if there are no bounds.
var anyCount = span{0, math.MaxInt}

// literals are the values that enum or const allow.
type literals struct {
	values []any
	keys   map[string]bool // the keys of the values (see key)
}

// patternProperty is a member of patternProperties.
type patternProperty struct {
	name  *pattern // nil if no engine takes the pattern
	value *schema
}

// drafts are the versions of JSON Schema, by $schema without its scheme and an empty fragment.
var drafts = map[string]int{
	"json-schema.org/schema":               2020,
	"json-schema.org/draft/2020-12/schema": 2020,
	"json-schema.org/draft/2019-09/schema": 2019,
	"json-schema.org/draft-07/schema":      7,
	"json-schema.org/draft-06/schema":      6,
	"json-schema.org/draft-04/schema":      4,
}

// compile compiles the JSON Schema in raw, which has draft 2020-12 if it does not say otherwise. It returns nil for a schema whose
// meaning is not clear: one that is no JSON Schema, has a dialect of its own, refers to another document, or has another document
// inside ($id).
//
// Two mistakes have a clear meaning, and are read as in the drafts that allowed them: items with a list, and exclusiveMinimum or
// exclusiveMaximum with a boolean.
//
// The result size is about how many bytes the compiled schema takes.
func compile(raw json.RawMessage) (s *schema, size int) {
	if m := measure(raw); m.depth > maxDepth || m.digits > maxDigits {
		return nil, 0
	}
	root, err := decode(raw)
	if err != nil {
		return nil, 0
	}
	c := compiler{root: root, draft: 2020, anchors: make(map[string][]string), made: make(map[string]*schema)}
	if object, ok := root.(map[string]any); ok && object["$schema"] != nil {
		name, _ := object["$schema"].(string)
		_, name, _ = strings.Cut(strings.TrimSuffix(name, "#"), "://")
		c.draft = drafts[name]
	}
	c.collect(root, nil)
	compiled := c.schema(root, "")
	for len(c.open) > 0 && !c.broken {
		next := c.open[len(c.open)-1]
		c.open = c.open[:len(c.open)-1]
		next.from.refs = append(next.from.refs, c.target(next.to))
	}
	if c.broken || c.draft == 0 {
		return nil, 0
	}
	return compiled, len(c.made)*subschemaBytes + min(c.patterns, maxPatterns)*instructionBytes
}

// decode decodes JSON with numbers as written.
func decode(raw json.RawMessage) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}

// maxSubschemas and maxPaths bound the memory for a compiled schema. A larger one is not checked.
const (
	maxSubschemas = 50_000
	maxPaths      = 16 << 20 // bytes of JSON pointers, each of which may be as long as the document

	subschemaBytes, instructionBytes = 700, 50 // about what one takes in memory, with its quick form
)

// compiler compiles one document.
type compiler struct {
	root    any
	draft   int
	anchors map[string][]string // the places of the schemas with a name, by "#name"
	made    map[string]*schema  // by JSON pointer
	open    []reference         // references that are not followed yet
	broken  bool                // the meaning of the document is not clear

	patterns int // the sizes of the patterns so far
	paths    int // the bytes of the pointers in made
}

// reference is a reference in the schema from.
type reference struct {
	from *schema
	to   string
}

// collect finds the names of schemas. place is where node is in the document.
func (c *compiler) collect(node any, place []string) {
	switch node := node.(type) {
	case map[string]any:
		for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := node[keyword].(string); ok && c.draft >= 2019 {
				c.name("#"+name, place)
			}
		}
		if id, ok := node[c.id()].(string); ok && isAnchor(id) && c.draft < 2019 {
			c.name(id, place)
		}
		for name, sub := range node {
			c.collect(sub, append(place, name))
		}
	case []any:
		for i, sub := range node {
			c.collect(sub, append(place, strconv.Itoa(i)))
		}
	}
}

// name gives a name to the schema at a place. Two schemas cannot have one name; what looks like a second one may be a value of enum.
func (c *compiler) name(name string, place []string) {
	if _, twice := c.anchors[name]; twice {
		c.broken = true
	}
	c.anchors[name] = slices.Clone(place)
}

// isAnchor reports whether an id (before draft 2019-09) is only a name within the document.
func isAnchor(id string) bool { return strings.HasPrefix(id, "#") }

// isDocument reports whether a part of the document is a document of its own, within which references have another meaning.
func (c *compiler) isDocument(part any) bool {
	object, _ := part.(map[string]any)
	id, _ := object[c.id()].(string)
	return id != "" && (c.draft >= 2019 || !isAnchor(id) && object["$ref"] == nil)
}

func (c *compiler) id() string {
	if c.draft == 4 {
		return "id"
	}
	return "$id"
}

// target returns the schema to which a reference leads.
func (c *compiler) target(ref string) *schema {
	steps, ok := c.anchors[ref]
	if !ok {
		steps, ok = referenceSteps(ref)
	}
	node := c.root
	for i := range steps {
		if !ok || i > 0 && c.isDocument(node) {
			ok = false
			break
		}
		node, ok = at(node, steps[i:i+1])
	}
	if !ok {
		c.broken = true
		return nil
	}
	return c.schema(node, path(steps))
}

// referenceSteps returns the place in the document to which a reference such as #/$defs/a leads. ok is false if it leads to
// another document, or is a name.
func referenceSteps(ref string) (steps []string, ok bool) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok || path == "" {
		return nil, ok
	}
	path, ok = strings.CutPrefix(path, "/")
	for step := range strings.SplitSeq(path, "/") {
		if decoded, err := url.PathUnescape(step); err == nil {
			step = decoded
		}
		steps = append(steps, pointerUnescapes.Replace(step))
	}
	return steps, ok
}

// pointerUnescapes reads a part of a JSON pointer.
var pointerUnescapes = strings.NewReplacer("~1", "/", "~0", "~")

// schema compiles the part of the document at a JSON pointer.
func (c *compiler) schema(node any, path string) *schema {
	if s := c.made[path]; s != nil {
		return s
	}
	c.paths += len(path)
	c.broken = c.broken || c.paths > maxPaths
	if yes, ok := node.(bool); ok {
		return booleans[yes]
	}
	s := &schema{kinds: anyKind}
	s.length, s.itemCount, s.propertyCount, s.containsCount = anyCount, anyCount, anyCount, span{1, math.MaxInt}
	c.made[path] = s
	object, ok := node.(map[string]any)
	if c.broken = c.broken || !ok || len(c.made) > maxSubschemas; !c.broken {
		k := keywords{compiler: c, of: object, path: path}
		k.read(s)
	}
	return s
}

// booleans are the schemas false and true.
var booleans = map[bool]*schema{false: {boolean: new(false)}, true: {boolean: new(true)}}
