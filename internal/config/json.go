package config

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// The bounds of what is read. No real config comes near them; they keep a file
// that is no config from taking the memory of the machine.
const (
	maxFileBytes = 8 << 20
	maxDepth     = 64
	maxValues    = 200_000
)

type kind byte

const (
	nullKind kind = iota
	boolKind
	numberKind
	stringKind
	arrayKind
	objectKind
)

func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// node is one JSON value with its place. A reader of our own, because each fault
// has to name its place, a key that is there twice has to be seen, and the
// nesting has to be bounded before anything recurses.
type node struct {
	kind   kind
	offset int // of the first byte, in the file
	// text is the decoded string, or the literal of a number or boolean.
	text    string
	members []member // of an object, in the order of the file
	items   []*node  // of an array
}

type member struct {
	key    string
	offset int // of the key
	value  *node
}

// scanner reads JSON with // and /* */ comments and trailing commas.
type scanner struct {
	data   []byte
	pos    int
	values int
}

// syntaxError is where and why a text is no JSON.
type syntaxError struct {
	offset int
	text   string
}

func (e *syntaxError) Error() string { return e.text }

func errorAt(offset int, format string, args ...any) error {
	return &syntaxError{offset, fmt.Sprintf(format, args...)}
}

// parseJSON reads the one value that data must be.
func parseJSON(data []byte) (*node, error) {
	s := &scanner{data: data}
	if err := s.space(); err != nil {
		return nil, err
	}
	if s.pos == len(s.data) {
		return nil, errorAt(s.pos, "the file is empty")
	}
	n, err := s.value(0)
	if err != nil {
		return nil, err
	}
	if err := s.space(); err != nil {
		return nil, err
	}
	if s.pos < len(s.data) {
		return nil, s.noEnd(n)
	}
	return n, nil
}

// glimpse is the character at pos, for an error.
func (s *scanner) glimpse() string {
	if s.pos >= len(s.data) {
		return "end of file"
	}
	r, _ := utf8.DecodeRune(s.data[s.pos:])
	return strconv.QuoteRune(r)
}

// space skips white space and comments.
func (s *scanner) space() error {
	for s.pos < len(s.data) {
		rest := s.data[s.pos:]
		switch {
		case bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0:
			s.pos++
		case bytes.HasPrefix(rest, []byte("//")):
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			s.pos += end
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 {
				return errorAt(s.pos, "the comment that begins here does not end; close it with */")
			}
			s.pos += 2 + end + 2
		default:
			return nil
		}
	}
	return nil
}

func (s *scanner) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, errorAt(s.pos, "nested deeper than %d levels", maxDepth)
	}
	if s.values++; s.values > maxValues {
		return nil, errorAt(s.pos, "more than %d values", maxValues)
	}
	if s.pos >= len(s.data) {
		return nil, errorAt(s.pos, "the file ends where a value is expected; write the value, and close what is open")
	}
	n := &node{offset: s.pos}
	var err error
	switch c := s.data[s.pos]; {
	case c == '{':
		n.kind = objectKind
		n.members, err = s.object(depth)
	case c == '[':
		n.kind = arrayKind
		n.items, err = s.array(depth)
	case c == '"':
		n.kind = stringKind
		n.text, err = s.str()
	case c == '-' || c >= '0' && c <= '9':
		n.kind = numberKind
		n.text, err = s.number()
	default:
		n.kind, n.text, err = s.word()
	}
	return n, err
}
