package arguments

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
)

const (
	maxDepth        = 128 // levels of nesting in the arguments
	maxDigits       = 64  // digits of a number; longer numbers would make validation quadratic
	maxSchemaBytes  = 2 << 20
	maxSchemas      = 4000
	maxSchemasBytes = 256 << 20 // bytes of the compiled schemas and their texts, about
	// textBytes are the bytes for each byte of a schema's text, as a value of an enum may take them.
	textBytes = 16
)

// Schemas compiles schemas, and keeps the compiled ones for the next calls. If a schema cannot be compiled, or takes too long to
// evaluate, all arguments are accepted, and only the server checks them. The zero value is ready for use, and safe for
// concurrent use.
type Schemas struct {
	mu    sync.Mutex
	kept  map[*byte]*compiled
	bytes int // total size of the schemas in kept, about
}

// compiled is a schema with what the check of arguments needs; once guards the compilation.
type compiled struct {
	once   sync.Once
	schema *schema // nil if arguments cannot be checked against the schema
	quick  *quick  // nil if there is no quick form
}

// compiled returns the compiled form of a schema, which it compiles at the first use. An empty or too long schema is not
// compiled, and accepts everything.
func (s *Schemas) compiled(raw json.RawMessage) *compiled {
	if len(raw) == 0 || len(raw) > maxSchemaBytes {
		return &compiled{}
	}
	c := s.slot(raw)
	c.once.Do(func() {
		size := 0
		if c.schema, size = compile(raw); c.schema != nil {
			c.quick = quickly(c.schema)
			s.count(size)
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
		if s.kept == nil || len(s.kept) >= maxSchemas || s.bytes > maxSchemasBytes {
			s.kept, s.bytes = make(map[*byte]*compiled), 0
		}
		c = &compiled{}
		s.bytes += textBytes * len(raw)
		s.kept[&raw[0]] = c
	}
	return c
}

// count adds the size of a compiled schema to that of all. A schema whose slot was forgotten meanwhile is counted too.
func (s *Schemas) count(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += size
}

// checks reports whether an object of these sizes can be validated.
func (c *compiled) checks(m measured) bool { return c.schema != nil && m.digits <= maxDigits }

// validate returns the decoded object, and why it does not fit the schema, or nil. It takes the steps that it needs from left.
func (c *compiled) validate(object json.RawMessage, left *int) (value any, failure *fault) {
	value, err := decode(object)
	if err != nil {
		return nil, nil // cannot happen, as Read has checked that object is valid JSON
	}
	return value, c.schema.validate(value, left)
}

// measured contains those sizes of a JSON value that determine how long its validation takes.
type measured struct {
	depth  int // depth of nesting
	digits int // digits of the longest number; more than maxDigits for a large exponent
}

// measure returns the sizes of raw. It does not recurse, and accepts invalid JSON.
func measure(raw []byte) measured {
	var m measured
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
