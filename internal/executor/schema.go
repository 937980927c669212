package executor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

const (
	maxViolations   = 5
	maxViolation    = 300 // runes of one
	maxLeaves       = 1000
	maxDepth        = 128 // of arguments
	maxDigits       = 64  // of a number; longer ones make validation quadratic or panic
	maxSchemaBytes  = 2 << 20
	maxSchemas      = 4000
	regexpTimeLimit = 50 * time.Millisecond
)

// ValidationError says why arguments do not fit a schema.
type ValidationError struct {
	// Violations are at most five, each "/path: what".
	Violations []string
}

func (e *ValidationError) Error() string { return strings.Join(e.Violations, "; ") }

// schemas compiles each schema once. A schema that cannot be compiled, or that
// is too dangerous to evaluate, checks nothing: the upstream judges then.
type schemas struct {
	mu       sync.Mutex
	compiled map[*byte]*compiledSchema
}

type compiledSchema struct {
	once   sync.Once
	schema *jsonschema.Schema // nil = not checked
	depth  int                // of arguments that are checked
}

// get finds the compiled form of raw. Schemas are told apart by where they lie:
// those of one catalogue are never changed, and stay reachable from here.
func (s *schemas) get(raw json.RawMessage) *compiledSchema {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.compiled[&raw[0]]
	if c == nil {
		if s.compiled == nil || len(s.compiled) >= maxSchemas {
			s.compiled = make(map[*byte]*compiledSchema)
		}
		c = &compiledSchema{}
		s.compiled[&raw[0]] = c
	}
	return c
}

// check validates arguments, an object, against a schema.
func (s *schemas) check(schema, arguments json.RawMessage) error {
	if len(schema) == 0 || len(schema) > maxSchemaBytes {
		return nil
	}
	c := s.get(schema)
	c.once.Do(func() { c.schema, c.depth = compile(schema) })
	if c.schema == nil {
		return nil
	}
	if depth, digits := measure(arguments); depth > c.depth || digits > maxDigits {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(arguments))
	if err != nil {
		return &ValidationError{Violations: []string{"/: " + err.Error()}}
	}
	return validate(c.schema, value)
}

// validate recovers: the library panics on some numbers and schemas, and then
// nothing was checked.
func validate(schema *jsonschema.Schema, value any) (err error) {
	defer func() {
		if recover() != nil {
			err = nil
		}
	}()
	failure := schema.Validate(value)
	if failure == nil {
		return nil
	}
	invalid, ok := failure.(*jsonschema.ValidationError)
	if !ok {
		return nil
	}
	return &ValidationError{Violations: violations(invalid)}
}

// compile returns nil for a schema that is not to be evaluated.
func compile(raw json.RawMessage) (schema *jsonschema.Schema, depth int) {
	defer func() {
		if recover() != nil {
			schema = nil
		}
	}()
	if d, digits := measure(raw); d > maxDepth || digits > maxDigits {
		return nil, 0
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, 0
	}
	work := estimateWork(doc)
	if work.tooMuch {
		return nil, 0
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(refuseAll{})
	compiler.UseRegexpEngine(compileRegexp)
	const name = "mem:///tool.json"
	if compiler.AddResource(name, doc) != nil {
		return nil, 0
	}
	if schema, err = compiler.Compile(name); err != nil {
		return nil, 0
	}
	return schema, work.depth()
}

// refuseAll loads nothing: the default loader reads files of this machine.
type refuseAll struct{}

// Load implements jsonschema.URLLoader.
func (refuseAll) Load(url string) (any, error) { return nil, fmt.Errorf("%s is not loaded", url) }

// compileRegexp takes Go's engine, which is linear in time, and for what only
// ECMAScript has one that gives up after a while.
func compileRegexp(pattern string) (jsonschema.Regexp, error) {
	if re, err := regexp.Compile(pattern); err == nil {
		return re, nil
	}
	re, err := regexp2.Compile(pattern, regexp2.ECMAScript|regexp2.Unicode)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = regexpTimeLimit
	return ecmaRegexp{re}, nil
}

type ecmaRegexp struct{ *regexp2.Regexp }

// MatchString holds a text for matching that could not be decided in time.
func (r ecmaRegexp) MatchString(s string) bool {
	ok, err := r.Regexp.MatchString(s)
	return ok || err != nil
}

// violations are the leaves of a validation error, sorted: the library finds
// them in another order each time.
func violations(e *jsonschema.ValidationError) []string {
	printer := message.NewPrinter(language.English)
	var list []string
	seen := make(map[string]bool)
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(list) >= maxLeaves {
			return
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
		if len(e.Causes) > 0 {
			return
		}
		text := pointer(e.InstanceLocation) + ": " + describeKind(e.ErrorKind, printer)
		if runes := []rune(text); len(runes) > maxViolation {
			text = string(runes[:maxViolation-3]) + "..."
		}
		if !seen[text] {
			seen[text] = true
			list = append(list, text)
		}
	}
	walk(e)
	slices.Sort(list)
	return list[:min(len(list), maxViolations)]
}

// describeKind says what is wrong. The library rounds the numbers of limits.
func describeKind(k jsonschema.ErrorKind, printer *message.Printer) string {
	limit := func(name string, got, want *big.Rat) string {
		return name + ": got " + decimal(got) + ", want " + decimal(want)
	}
	switch k := k.(type) {
	case *kind.Minimum:
		return limit("minimum", k.Got, k.Want)
	case *kind.Maximum:
		return limit("maximum", k.Got, k.Want)
	case *kind.ExclusiveMinimum:
		return limit("exclusiveMinimum", k.Got, k.Want)
	case *kind.ExclusiveMaximum:
		return limit("exclusiveMaximum", k.Got, k.Want)
	case *kind.MultipleOf:
		return limit("multipleOf", k.Got, k.Want)
	}
	return k.LocalizedString(printer)
}

// decimal writes a number that came as a JSON number of at most maxDigits.
func decimal(r *big.Rat) string {
	if r.IsInt() && len(r.Num().String()) <= maxDigits {
		return r.Num().String()
	}
	if digits, exact := r.FloatPrec(); exact && digits <= maxDigits {
		return r.FloatString(digits)
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// pointer is a JSON pointer (RFC 6901); the root is "/", as it reads better.
func pointer(location []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var out strings.Builder
	for _, step := range location {
		out.WriteByte('/')
		out.WriteString(escape.Replace(step))
	}
	if out.Len() == 0 {
		return "/"
	}
	return out.String()
}

// measure returns the depth of nesting and the length of the longest number of
// a JSON value; an exponent counts with its value, as it is written out.
func measure(raw []byte) (depth, digits int) {
	level := 0
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			i++
			for i < len(raw) && raw[i] != '"' {
				if raw[i] == '\\' {
					i++
				}
				i++
			}
			i++
		case c == '{' || c == '[':
			level++
			depth = max(depth, level)
			i++
		case c == '}' || c == ']':
			level--
			i++
		case c == '-' || (c >= '0' && c <= '9'):
			start := i
			for i < len(raw) && strings.IndexByte("+-.eE0123456789", raw[i]) >= 0 {
				i++
			}
			digits = max(digits, numberSize(raw[start:i]))
		default:
			i++
		}
	}
	return depth, digits
}

func numberSize(number []byte) int {
	at := bytes.IndexAny(number, "eE")
	if at < 0 {
		return len(number)
	}
	exponent := 0
	for _, c := range number[at+1:] {
		if c >= '0' && c <= '9' && exponent < 1e6 {
			exponent = exponent*10 + int(c-'0')
		}
	}
	if exponent > 400 {
		return maxDigits + 1
	}
	return at
}
