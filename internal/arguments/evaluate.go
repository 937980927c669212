package arguments

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

const (
	// maxSteps bounds the work for the arguments of a call, also if they are validated several times because they are mended. A
	// step is the evaluation of one subschema for one value, of one member, or of 64 bytes of text. It takes about stepTime.
	maxSteps = 1e6
	stepTime = 250 * time.Nanosecond
	// maxNesting bounds how deeply subschemas are evaluated within each other, for the same value or for parts of it.
	maxNesting = 16 * maxDepth
	// maxAt bounds the names that lead to a value, in bytes. What lies inside longer ones is not checked, as each fault has a copy.
	maxAt = 2048
	// maxFaults bounds the memory for faults, also those of alternatives that were not meant. Beyond it, up to as many faults again
	// are kept if a kept fault is among their causes: otherwise nothing would lead from the outermost fault to that one.
	maxFaults = 20_000
)

// fault says that a value does not fit a keyword of a schema.
type fault struct {
	at      []string // the place of the value in the arguments
	keyword string   // "false" for the schema false, "" for several faults of one schema
	schema  *schema
	names   []string // the properties that are missing, or that are not allowed
	// detail is the type that the value has (type), the property whose name does not fit (propertyNames), or the property that
	// needs those that are missing (dependentRequired).
	detail string
	items  [2]int   // the items that are equal (uniqueItems)
	excess int      // how many items there are too many (items)
	twice  bool     // more than one alternative fits (oneOf)
	causes []*fault // the faults of subschemas
}

// unnamed stands for faults if there are too many, or if nobody asks what they are.
var unnamed = &fault{}

// validate returns why a decoded value does not fit the schema, or nil if it fits, or if that is not known (see
// evaluation.value). It takes the steps that it needs from left.
func (s *schema) validate(value any, left *int) *fault {
	e := evaluation{left: *left}
	failure, _ := e.value(s, value, nil, nil)
	if *left = e.left; e.left < 0 {
		return nil
	}
	return failure
}

// evaluation is the evaluation of a schema for some arguments.
type evaluation struct {
	at      []string // the place of the value that is evaluated
	atSize  int      // the bytes of the names in at
	left    int      // steps; if there are none left, nothing is known of the arguments
	nesting int
	made    int  // faults that are kept
	quiet   bool // only whether there is a fault matters
}

// value evaluates a schema for a value. A fault means that the value does not fit. Without a fault, sure means that it fits; else
// that is not known, and the server must decide. outer is the check of the same value that this one is a part of, if there is
// one. seen, if not nil, gets the parts of the value that the schema evaluates.
//
// It is not known whether a string fits a format. A property that is required and has a default may be missing, since several
// libraries list such properties as required although their servers do not need them. A null fits what is nullable. So a value
// that is not sure to fit is taken, and also what is sure not to fit where keywords such as not negate that.
func (e *evaluation) value(s *schema, value any, outer *check, seen *parts) (failure *fault, sure bool) {
	if e.left--; e.left < 0 || e.nesting == maxNesting {
		return nil, false
	}
	if s.boolean != nil {
		if *s.boolean {
			return nil, true
		}
		return e.fault(fault{schema: s, keyword: "false"}), true
	}
	around := 0
	for c := outer; c != nil; c = c.outer {
		if c.schema == s {
			return nil, false // the schema refers to itself, which says nothing of the value
		}
		around++
	}
	e.left -= around / 64
	e.nesting++
	c := check{evaluation: e, schema: s, value: value, outer: outer, seen: seen}
	failure = c.run()
	e.nesting--
	if failure == nil || !s.nullable {
		return failure, !c.unsure
	}
	if value == nil {
		return nil, false
	}
	null := e.fault(fault{schema: onlyNull, keyword: "type", detail: typeOf(value)})
	return e.fault(fault{schema: s, keyword: "anyOf", causes: []*fault{failure, null}}), true
}

// onlyNull is the schema of null.
var onlyNull = &schema{kinds: kindNull}

// fault returns a fault of the value that is evaluated.
func (e *evaluation) fault(f fault) *fault {
	named := func(f *fault) bool { return f != unnamed }
	switch {
	case e.quiet, e.made >= 2*maxFaults, e.made >= maxFaults && !slices.ContainsFunc(f.causes, named):
		return unnamed
	}
	e.made++
	f.at = slices.Clone(e.at)
	return &f
}

// check is the evaluation of one schema for one value.
type check struct {
	*evaluation
	schema *schema
	value  any
	outer  *check // the check of the same value that this one is a part of
	seen   *parts // nil if nobody asks what is evaluated
	faults []*fault
	unsure bool
}

// run evaluates all keywords. If the type or the value itself is wrong, the others do not matter.
func (c *check) run() *fault {
	s, outside := c.schema, c.seen
	if wrong := c.literal(); wrong != nil {
		return wrong
	}
	if s.otherProperties != nil || s.otherItems != nil {
		c.seen = new(parts)
	}
	for _, ref := range s.refs {
		c.take(c.same(ref))
	}
	if !c.decided() {
		c.byType()
	}
	if !c.decided() {
		c.alternatives()
		c.conditional()
		c.unevaluated()
	}
	switch len(c.faults) {
	case 0:
		if outside != c.seen {
			c.merge(outside, c.seen)
		}
		return nil
	case 1:
		return c.faults[0]
	}
	return c.fault(fault{schema: s, causes: c.faults})
}

// byType evaluates the keywords that are only for values of one type.
func (c *check) byType() {
	switch value := c.value.(type) {
	case map[string]any:
		c.object(value)
	case []any:
		c.array(value)
	case string:
		c.text(value)
	case json.Number:
		c.number(value)
	}
}

// decided reports whether the other keywords do not matter any more.
func (c *check) decided() bool { return c.left < 0 || c.quiet && len(c.faults) > 0 }

func (c *check) add(f fault) {
	f.schema = c.schema
	c.put(c.fault(f))
}

// take takes over the result of a subschema that has to fit.
func (c *check) take(failure *fault, sure bool) {
	if failure != nil {
		c.put(failure)
	}
	c.unsure = c.unsure || !sure
}

func (c *check) put(failure *fault) {
	if n := len(c.faults); failure != unnamed || n == 0 || c.faults[n-1] != unnamed {
		c.faults = append(c.faults, failure)
	}
}

// same evaluates a subschema for the same value.
func (c *check) same(s *schema) (failure *fault, sure bool) {
	var seen *parts
	if c.seen != nil {
		seen = new(parts)
	}
	if failure, sure = c.evaluation.value(s, c.value, c, seen); failure == nil && c.seen != nil {
		c.merge(c.seen, seen)
	}
	return failure, sure
}

// asks evaluates a subschema for the same value, only to know whether it fits.
func (c *check) asks(s *schema) (fails, sure bool) {
	quiet, made := c.quiet, c.made
	c.quiet = true
	failure, sure := c.same(s)
	c.quiet, c.made = quiet, made
	return failure != nil, sure
}

// part evaluates a subschema for a member or an item of the value.
func (c *check) part(s *schema, value any, step string) (failure *fault, sure bool) {
	if c.atSize+len(step) > maxAt {
		return nil, false
	}
	c.at, c.atSize = append(c.at, step), c.atSize+len(step)
	failure, sure = c.evaluation.value(s, value, nil, nil)
	c.at, c.atSize = c.at[:len(c.at)-1], c.atSize-len(step)
	return failure, sure
}

func (c *check) literal() *fault {
	s := c.schema
	if number, ok := c.value.(json.Number); ok && strings.ContainsAny(string(number), "eE") {
		c.left -= 100 // it may have 400 digits
	}
	if !s.kinds.have(c.value) {
		return c.fault(fault{schema: s, keyword: "type", detail: typeOf(c.value)})
	}
	if s.constant == nil && s.enum == nil {
		return nil
	}
	k := c.key(c.value)
	switch {
	case s.constant != nil && !s.constant.keys[k]:
		return c.fault(fault{schema: s, keyword: "const"})
	case s.enum != nil && !s.enum.keys[k]:
		return c.fault(fault{schema: s, keyword: "enum"})
	}
	return nil
}

// key returns the key of a value, and counts the work.
func (c *check) key(value any) string {
	k := key(value)
	if c.left -= len(k) / 8; typeOf(value) == "object" || typeOf(value) == "array" {
		c.left -= len(k) / 2 // its members are sorted
	}
	return k
}

// read counts the work for text of so many bytes.
func (c *check) read(bytes int) { c.left -= bytes / 64 }

func (c *check) text(text string) {
	s := c.schema
	c.unsure = c.unsure || s.unclear
	c.read(len(text))
	if s.length != anyCount {
		c.length(text)
	}
	if s.pattern != nil {
		matches, sure := c.matches(s.pattern, text)
		if !matches {
			c.add(fault{keyword: "pattern"})
		}
		c.unsure = c.unsure || !sure
	}
}

// length evaluates minLength and maxLength. A character beyond the first 65,536, such as an emoji, is one character in Python, but two
// in JavaScript, Java and .NET, so it is not known whether a text fits for which that matters.
func (c *check) length(text string) {
	allowed, n, units := c.schema.length, 0, 0
	for _, r := range text {
		n, units = n+1, units+utf16.RuneLen(r)
	}
	if n < allowed.least && units >= allowed.least || n <= allowed.most && units > allowed.most {
		c.unsure = true
		return
	}
	c.count(n, allowed, "minLength", "maxLength")
}

func (c *check) count(n int, allowed span, least, most string) {
	if n < allowed.least {
		c.add(fault{keyword: least})
	}
	if n > allowed.most {
		c.add(fault{keyword: most})
	}
}

// matches reports whether a pattern matches a text. If that is not known, sure is false and matches is true: mcpx could not compile the
// pattern (p is nil), engines disagree about the text, no steps are left, or the ECMAScript engine needs too long.
func (c *check) matches(p *pattern, text string) (matches, sure bool) {
	if c.left--; p == nil || c.left < 0 {
		return true, false
	}
	if p.disputed != nil {
		// Each character is looked up in several tables: 8 bytes take as long as a step.
		if c.left -= len(text) / 8; c.left < 0 || strings.ContainsFunc(text, p.disputed) {
			return true, false
		}
	}
	if p.linear != nil {
		if c.read(len(text) * p.size); c.left < 0 {
			return true, false
		}
		return p.linear.MatchString(text), true
	}
	began := time.Now()
	matches, err := p.slow.MatchString(text)
	c.left -= int(min(time.Since(began), regexpTimeLimit) / stepTime)
	return matches || err != nil, err == nil
}

func (c *check) number(number json.Number) {
	s := c.schema
	if s.minimum == nil && s.maximum == nil && s.above == nil && s.below == nil && s.multipleOf == nil {
		return
	}
	n := rational(number)
	for _, bound := range []struct {
		keyword string
		wrong   bool
	}{
		{"minimum", s.minimum != nil && n.Cmp(s.minimum) < 0},
		{"maximum", s.maximum != nil && n.Cmp(s.maximum) > 0},
		{"exclusiveMinimum", s.above != nil && n.Cmp(s.above) <= 0},
		{"exclusiveMaximum", s.below != nil && n.Cmp(s.below) >= 0},
		{"multipleOf", s.multipleOf != nil && !new(big.Rat).Quo(n, s.multipleOf).IsInt()},
	} {
		if bound.wrong {
			c.add(fault{keyword: bound.keyword})
		}
	}
}

// alternatives evaluates not, allOf, anyOf and oneOf.
func (c *check) alternatives() {
	s := c.schema
	if s.not != nil {
		fails, sure := c.asks(s.not)
		if !fails && sure {
			c.add(fault{keyword: "not"})
		}
		c.unsure = c.unsure || !sure
	}
	for _, part := range s.allOf {
		if c.take(c.same(part)); c.decided() {
			return
		}
	}
	if len(s.anyOf) > 0 {
		c.either(fault{keyword: "anyOf"}, s.anyOf, len(s.anyOf))
	}
	if len(s.oneOf) > 0 {
		c.either(fault{keyword: "oneOf"}, s.oneOf, 1)
	}
}

// either evaluates alternatives, of which at least one and at most most must fit. failure is the fault otherwise.
func (c *check) either(failure fault, alternatives []*schema, most int) {
	possible, certain, made := 0, 0, c.made
	for _, alternative := range alternatives {
		wrong, sure := c.same(alternative)
		switch {
		case wrong != nil:
			failure.causes = append(failure.causes, wrong)
			continue
		case sure:
			certain++
		}
		possible++
		if c.left < 0 || certain > most || certain == 1 && most > 1 && c.seen == nil {
			break
		}
	}
	switch {
	case certain > most:
		failure.causes, failure.twice = nil, true
		c.add(failure)
	case possible == 0:
		c.add(failure)
	default:
		c.made = made // those of the alternatives are forgotten
		c.unsure = c.unsure || certain == 0 || possible > most || c.seen != nil && possible > certain
	}
}

// conditional evaluates if, then and else. If it is not known whether the condition fits, then or else has to fit.
func (c *check) conditional() {
	s := c.schema
	if s.condition == nil {
		return
	}
	fails, sure := c.asks(s.condition)
	switch {
	case fails:
		c.takeIf(s.otherwise)
	case sure:
		c.takeIf(s.then)
	default:
		c.unsure = true
		if s.then != nil && s.otherwise != nil {
			if fails, _ := c.asks(s.otherwise); fails {
				c.take(c.same(s.then))
			}
		}
	}
}

func (c *check) takeIf(s *schema) {
	if s != nil {
		c.take(c.same(s))
	}
}
