package arguments

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
	maxDepth        = 128 // levels of nesting in the arguments
	maxDigits       = 64  // digits of a number; longer numbers make validation quadratic or panic
	maxSchemaBytes  = 2 << 20
	maxSchemas      = 4000
	maxSchemasBytes = 32 << 20 // bytes of the schemas' texts; compiled schemas take several times as much
	regexpTimeLimit = 50 * time.Millisecond
)

// Schemas compiles schemas, and keeps the compiled ones for the next calls. If a schema cannot be compiled, or might take too
// long to evaluate, all arguments are accepted, and only the server checks them. The zero value is ready for use, and safe for
// concurrent use.
type Schemas struct {
	mu    sync.Mutex
	kept  map[*byte]*compiled
	bytes int // total size of the texts of the schemas in kept
}

// compiled is a schema with what the check of arguments needs; once guards the compilation.
type compiled struct {
	once   sync.Once
	schema *jsonschema.Schema // nil if arguments cannot be checked against the schema
	cost   cost
	quick  *quick // nil if there is no quick form
}

// compiled returns the compiled form of a schema, which it compiles at the first use. An empty or too long schema is not
// compiled, and accepts everything.
func (s *Schemas) compiled(raw json.RawMessage) *compiled {
	if len(raw) == 0 || len(raw) > maxSchemaBytes {
		return &compiled{}
	}
	c := s.slot(raw)
	c.once.Do(func() {
		if c.schema, c.cost = compile(raw); c.schema != nil {
			c.quick = quickly(c.schema)
		}
	})
	return c
}

// slot returns the entry for a schema, which may not be compiled yet. The key is the address of the schema's text, which never
// changes and stays reachable through the key. If there are too many schemas, slot forgets all of them.
func (s *Schemas) slot(raw json.RawMessage) *compiled {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.kept[&raw[0]]
	if c == nil {
		if s.kept == nil || len(s.kept) >= maxSchemas || s.bytes+len(raw) > maxSchemasBytes {
			s.kept, s.bytes = make(map[*byte]*compiled), 0
		}
		c = &compiled{}
		s.bytes += len(raw)
		s.kept[&raw[0]] = c
	}
	return c
}

// checks reports whether an object of these sizes can be validated in time.
func (c *compiled) checks(m measured) bool {
	return c.schema != nil && m.digits <= maxDigits && c.cost.allows(m.depth, m.values)
}

// validate returns the decoded object, and an error if it does not fit. If the library panics, as it does on some numbers and
// schemas, validate returns no error, so only the server checks the object.
func (c *compiled) validate(object json.RawMessage) (value any, failure *jsonschema.ValidationError) {
	defer func() {
		if recover() != nil {
			failure = nil
		}
	}()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(object))
	if err != nil {
		return nil, nil // cannot happen, as Read has checked that object is valid JSON
	}
	failure, _ = c.schema.Validate(value).(*jsonschema.ValidationError)
	return value, failure
}

// compile compiles a schema. It returns nil if the schema cannot be compiled, or must not be evaluated because that might take
// too long.
func compile(raw json.RawMessage) (schema *jsonschema.Schema, estimated cost) {
	defer func() {
		if recover() != nil {
			schema = nil
		}
	}()
	if m := measure(raw); m.depth > maxDepth || m.digits > maxDigits {
		return nil, cost{}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, cost{}
	}
	estimated = estimate(doc)
	if estimated.unbounded {
		return nil, cost{}
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(refuseAll{})
	compiler.UseRegexpEngine(compileRegexp)
	compiler.AssertFormat() // in all drafts, so that relax finds each format
	const name = "mem:///tool.json"
	if compiler.AddResource(name, doc) != nil {
		return nil, cost{}
	}
	if schema, err = compiler.Compile(name); err != nil {
		return nil, cost{}
	}
	relax(schema, doc)
	return schema, estimated
}

// refuseAll is the loader for schemas to which a schema refers. It refuses them all; the default loader would read local files.
type refuseAll struct{}

// Load implements jsonschema.URLLoader.
func (refuseAll) Load(url string) (any, error) { return nil, fmt.Errorf("%s is not loaded", url) }

// compileRegexp compiles a pattern with Go's engine, which needs linear time. If Go's engine does not support the pattern,
// compileRegexp uses an ECMAScript engine with a time limit.
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

// MatchString reports whether the pattern matches. It also returns true if the time limit ends the search.
func (r ecmaRegexp) MatchString(s string) bool {
	ok, err := r.Regexp.MatchString(s)
	return ok || err != nil
}

// measured contains those sizes of a JSON value that determine how long its validation takes.
type measured struct {
	depth  int // depth of nesting
	digits int // digits of the longest number; more than maxDigits for a large exponent
	values int // an upper bound for the number of values
}

// measure returns the sizes of raw. It does not recurse, and accepts invalid JSON.
func measure(raw []byte) measured {
	m := measured{values: 1}
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
			m.depth = max(m.depth, level)
			m.values++
			i++
		case c == '}' || c == ']':
			level--
			i++
		case c == '-' || (c >= '0' && c <= '9'):
			start := i
			for i < len(raw) && strings.IndexByte("+-.eE0123456789", raw[i]) >= 0 {
				i++
			}
			m.digits = max(m.digits, numberSize(raw[start:i]))
		default:
			if c == ',' {
				m.values++
			}
			i++
		}
	}
	return m
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
