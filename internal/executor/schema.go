package executor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	maxDepth        = 128 // of arguments
	maxDigits       = 64  // of a number; longer ones make validation quadratic or panic
	maxSchemaBytes  = 2 << 20
	maxSchemas      = 4000
	maxSchemasBytes = 32 << 20 // of their texts: compiled they take several times as much
	regexpTimeLimit = 50 * time.Millisecond
)

// ValidationError says why arguments do not fit a schema.
type ValidationError struct {
	// Violations are at most five, each "/path: what".
	Violations []string
	// More is how many others there are.
	More int
}

func (e *ValidationError) Error() string {
	text := strings.Join(e.Violations, "; ")
	if e.More > 0 {
		text += fmt.Sprintf("; and %d more", e.More)
	}
	return text
}

// schemas compiles each schema once. A schema that cannot be compiled, or that
// is too dangerous to evaluate, checks nothing: the upstream judges then.
type schemas struct {
	mu       sync.Mutex
	compiled map[*byte]*compiledSchema
	bytes    int // of the texts of compiled
}

type compiledSchema struct {
	once   sync.Once
	schema *jsonschema.Schema // nil = not checked
	work   work
}

// get finds the compiled form of raw. Schemas are told apart by where they lie:
// those of one catalogue are never changed, and stay reachable from here.
func (s *schemas) get(raw json.RawMessage) *compiledSchema {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.compiled[&raw[0]]
	if c == nil {
		if s.compiled == nil || len(s.compiled) >= maxSchemas || s.bytes+len(raw) > maxSchemasBytes {
			s.compiled, s.bytes = make(map[*byte]*compiledSchema), 0
		}
		c = &compiledSchema{}
		s.bytes += len(raw)
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
	c.once.Do(func() { c.schema, c.work = compile(schema) })
	if c.schema == nil {
		return nil
	}
	if depth, digits, values := measure(arguments); digits > maxDigits || !c.work.allows(depth, values) {
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
	return violations(invalid)
}

// compile returns nil for a schema that is not to be evaluated.
func compile(raw json.RawMessage) (schema *jsonschema.Schema, cost work) {
	defer func() {
		if recover() != nil {
			schema = nil
		}
	}()
	if depth, digits, _ := measure(raw); depth > maxDepth || digits > maxDigits {
		return nil, work{}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, work{}
	}
	cost = estimateWork(doc)
	if cost.tooMuch {
		return nil, work{}
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(refuseAll{})
	compiler.UseRegexpEngine(compileRegexp)
	const name = "mem:///tool.json"
	if compiler.AddResource(name, doc) != nil {
		return nil, work{}
	}
	if schema, err = compiler.Compile(name); err != nil {
		return nil, work{}
	}
	return schema, cost
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

// tooDeep reports arguments that are nested deeper than any server is to get.
func tooDeep(arguments []byte) bool {
	if len(arguments) <= 2*maxDepth {
		return false
	}
	depth, _, _ := measure(arguments)
	return depth > maxDepth
}

// measure returns the depth of nesting, the length of the longest number, and the
// number of values of a JSON value, or more; an exponent counts with its value, as
// it is written out.
func measure(raw []byte) (depth, digits, values int) {
	level := 0
	values = 1
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
			values++
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
			if c == ',' {
				values++
			}
			i++
		}
	}
	return depth, digits, values
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
