package config

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// object reads the members of an object; s is at its brace.
func (s *scanner) object(depth int) ([]member, error) {
	start := s.pos
	s.pos++
	members := []member{}
	for {
		if err := s.space(); err != nil {
			return nil, err
		}
		switch {
		case s.pos >= len(s.data):
			return nil, s.open(start)
		case s.data[s.pos] == '}':
			s.pos++
			return members, nil
		case s.data[s.pos] != '"':
			return nil, s.noKey(start)
		}
		m := member{offset: s.pos}
		var err error
		if m.key, err = s.str(); err != nil {
			return nil, err
		}
		if err := s.space(); err != nil {
			return nil, err
		}
		if s.pos >= len(s.data) || s.data[s.pos] != ':' {
			return nil, errorAt(s.pos, "a colon is missing after the key: expected ':', not %s", s.glimpse())
		}
		s.pos++
		if err := s.space(); err != nil {
			return nil, err
		}
		if m.value, err = s.value(depth + 1); err != nil {
			return nil, err
		}
		members = append(members, m)
		if err := s.comma(start); err != nil {
			return nil, err
		}
	}
}

// array reads the items of an array; s is at its bracket.
func (s *scanner) array(depth int) ([]*node, error) {
	start := s.pos
	s.pos++
	items := []*node{}
	for {
		if err := s.space(); err != nil {
			return nil, err
		}
		if s.pos < len(s.data) && s.data[s.pos] == ']' {
			s.pos++
			return items, nil
		}
		if s.pos >= len(s.data) {
			return nil, s.open(start)
		}
		item, err := s.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if err := s.comma(start); err != nil {
			return nil, err
		}
	}
}

// comma skips the comma after a member of what begins at start; the end may
// stand in its place.
func (s *scanner) comma(start int) error {
	after := s.pos
	if err := s.space(); err != nil {
		return err
	}
	switch {
	case s.pos >= len(s.data):
		return s.open(start)
	case s.data[s.pos] == ',':
		s.pos++
	case s.data[s.pos] != s.closing(start):
		return s.noComma(start, after)
	}
	return nil
}

// numberPattern is the grammar of JSON numbers (RFC 8259, 6).
var numberPattern = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$`)

func (s *scanner) number() (string, error) {
	text := s.run(func(c byte) bool {
		return c >= '0' && c <= '9' || strings.IndexByte("+-.eE", c) >= 0
	})
	if !numberPattern.MatchString(text) {
		return "", errorAt(s.pos-len(text), "invalid number; numbers are written like 5, -5, 0.5 or 1e3")
	}
	return text, nil
}

// word reads true, false or null.
func (s *scanner) word() (kind, string, error) {
	text := s.run(func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
	})
	switch text {
	case "true", "false":
		return boolKind, text, nil
	case "null":
		return nullKind, "", nil
	case "":
		return nullKind, "", s.noValue()
	}
	// Not with the word: it may be a secret without its quotes.
	return nullKind, "", errorAt(s.pos-len(text), "unknown word; only true, false and null stand without double quotes (\")")
}

// run takes the bytes that are in the set.
func (s *scanner) run(in func(byte) bool) string {
	start := s.pos
	for s.pos < len(s.data) && in(s.data[s.pos]) {
		s.pos++
	}
	return string(s.data[start:s.pos])
}

// str reads a string; s is at its quote.
func (s *scanner) str() (string, error) {
	start := s.pos
	s.pos++
	var b []byte
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return string(b), nil
		case c == '\n' || c == '\r':
			return "", errorAt(start, `the string that begins here does not end in its line; add the closing "`)
		case c < 0x20:
			return "", errorAt(s.pos, "a control character in a string has to be written as \\u%04x", c)
		case c == '\\':
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			b = utf8.AppendRune(b, r)
		default:
			b = append(b, c)
			s.pos++
		}
	}
	return "", errorAt(start, `the string that begins here does not end; add the closing "`)
}

// escape reads one escape, or two that are a surrogate pair. A lone surrogate
// becomes U+FFFD.
func (s *scanner) escape() (rune, error) {
	if s.pos+1 >= len(s.data) {
		return 0, errorAt(s.pos, `the string does not end; add the closing "`)
	}
	const plain, means = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	c := s.data[s.pos+1]
	if i := strings.IndexByte(plain, c); i >= 0 {
		s.pos += 2
		return rune(means[i]), nil
	}
	r, ok := s.hex(s.pos)
	if !ok {
		return 0, errorAt(s.pos, `invalid escape (a backslash itself is written as \\)`)
	}
	s.pos += 6
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if low, ok := s.hex(s.pos); ok {
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			s.pos += 6
			return both, nil
		}
	}
	return utf8.RuneError, nil
}

// hex reads the escape \u with its four digits at pos.
func (s *scanner) hex(pos int) (rune, bool) {
	if pos+6 > len(s.data) || s.data[pos] != '\\' || s.data[pos+1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(s.data[pos+2:pos+6]), 16, 16)
	return rune(v), err == nil
}

// position is the line and the column of an offset, both from 1. Columns count
// characters, as editors do.
func position(data []byte, offset int) (line, column int) {
	before := string(data[:offset])
	start := strings.LastIndexByte(before, '\n') + 1
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[start:])
}
