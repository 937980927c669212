package config

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// expected is the kind of token that must come next in JSON.
type expected byte

const (
	aValue expected = iota
	aKey            // or the closing bracket of the object
	aColon
	aComma // or the closing bracket of the object or array
	theEnd
)

// scanner splits data, which may be invalid JSON, into tokens. It never fails. mcpx uses it at two times. Before parsing, it checks
// the depth of nesting and the number of values. After parsing has failed, it finds out what is wrong.
type scanner struct {
	data []byte
	pos  int // where the current token begins
	end  int // where the current token ends

	open  []int // where the objects and arrays around the current token begin, the innermost last
	last  byte  // the previous token: a bracket, comma or colon as it is, 'k' for a key, 'v' for a value, 0 at the start
	after int   // where the previous token ends
}

// next moves to the next token, and reports whether there is one. A string without a closing quote ends with its line.
func (s *scanner) next() bool {
	if s.end > 0 {
		s.pass()
	}
	s.after, s.pos = s.end, s.space(s.end)
	if s.pos == len(s.data) {
		return false
	}
	s.end = s.pos + 1
	switch c := s.data[s.pos]; {
	case c == '"':
		for s.end < len(s.data) && s.data[s.end] != '\n' {
			c := s.data[s.end]
			s.end++
			if c == '"' {
				break
			}
			if c == '\\' && s.end < len(s.data) {
				s.end++
			}
		}
	case isWord(c) || c == '-':
		for s.end < len(s.data) && (isWord(s.data[s.end]) || strings.IndexByte("+-.", s.data[s.end]) >= 0) {
			s.end++
		}
	case c >= utf8.RuneSelf:
		_, size := utf8.DecodeRune(s.data[s.pos:])
		s.end = s.pos + size
	}
	return true
}

// pass updates the fields open and last for the current token, before the scanner moves to the next one.
func (s *scanner) pass() {
	switch c := s.data[s.pos]; c {
	case '{', '[':
		s.open, s.last = append(s.open, s.pos), c
	case '}', ']':
		s.open, s.last = s.open[:max(0, len(s.open)-1)], c
	case ',', ':':
		s.last = c
	default:
		if s.expects() == aKey {
			s.last = 'k'
		} else {
			s.last = 'v'
		}
	}
}

// expects returns which kind of token the current token should be.
func (s *scanner) expects() expected {
	inObject := len(s.open) > 0 && s.data[s.open[len(s.open)-1]] == '{'
	switch {
	case s.last == 0, s.last == ':', s.last == '[', s.last == ',' && !inObject:
		return aValue
	case s.last == '{', s.last == ',':
		return aKey
	case s.last == 'k':
		return aColon
	case len(s.open) == 0:
		return theEnd
	}
	return aComma
}

// isValue reports whether the current token is a value, or the opening bracket of one.
func (s *scanner) isValue() bool {
	c := s.data[s.pos]
	return s.expects() != aKey && (c == '"' || c == '{' || c == '[' || c == '-' || isWord(c))
}

// space returns the position after the white space and comments that begin at pos. It stops before a comment that is not
// closed.
func (s *scanner) space(pos int) int {
	for pos < len(s.data) {
		rest := s.data[pos:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			pos++
		case bytes.HasPrefix(rest, []byte("//")):
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				return len(s.data)
			}
			pos += end
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 {
				return pos
			}
			pos += 2 + end + 2
		default:
			return pos
		}
	}
	return pos
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
