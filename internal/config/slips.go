package config

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// What is wrong where a text is no JSON, and what to do about it. Of the text
// itself no more than a character is shown: it may be a secret.

// closing is the bracket that ends what begins at start.
func (s *scanner) closing(start int) byte {
	if s.data[start] == '{' {
		return '}'
	}
	return ']'
}

// what names what begins at start, with its place.
func (s *scanner) what(start int) (what string, line int) {
	what = "array"
	if s.data[start] == '{' {
		what = "object"
	}
	line, _ = position(s.data, start)
	return what, line
}

// open is the error of a file that ends before what begins at start does.
func (s *scanner) open(start int) error {
	what, line := s.what(start)
	return errorAt(s.pos, "the file ends, but the %s that begins in line %d is not closed; add '%c'", what, line, s.closing(start))
}

// noKey is the error where neither a key nor the end of an object stands.
func (s *scanner) noKey(start int) error {
	_, line := s.what(start)
	switch c := s.data[s.pos]; {
	case c == ',':
		return errorAt(s.pos, "a comma too many; remove it")
	case c == ']' || c == ')':
		return errorAt(s.pos, "the object that begins in line %d is not closed; expected '}', not '%c'", line, c)
	case c == '{' || c == '[':
		return errorAt(s.pos, "a key is missing before '%c'; write \"name\": before it", c)
	case c == '\'':
		return errorAt(s.pos, `keys need double quotes ("), not single ones`)
	case s.atWord():
		return errorAt(s.pos, `keys need double quotes ("); put them around this one`)
	}
	if err := s.odd(); err != nil {
		return err
	}
	return errorAt(s.pos, "expected a key in double quotes or '}', not %s", s.glimpse())
}

// noValue is the error where no value begins.
func (s *scanner) noValue() error {
	switch c := s.data[s.pos]; c {
	case ',':
		if before := bytes.TrimRight(s.data[:s.pos], " \t\r\n"); len(before) > 0 && before[len(before)-1] != ':' {
			return errorAt(s.pos, "a comma too many; remove it")
		}
		return errorAt(s.pos, "a value is missing before this comma")
	case '}', ']', ')':
		return errorAt(s.pos, "a value is missing before '%c'", c)
	case '\'':
		return errorAt(s.pos, `strings need double quotes ("), not single ones`)
	}
	if err := s.odd(); err != nil {
		return err
	}
	return errorAt(s.pos, "expected a value, not %s", s.glimpse())
}

// noComma is the error where neither a comma nor the end follows a member of what
// begins at start. after is the end of the member.
func (s *scanner) noComma(start, after int) error {
	what, line := s.what(start)
	c := s.data[s.pos]
	switch {
	case c == '}' || c == ']' || c == ')':
		return errorAt(s.pos, "the %s that begins in line %d is not closed; expected '%c' before '%c'", what, line, s.closing(start), c)
	case c == ':' && what == "array":
		return errorAt(s.pos, "an array has no keys; write { } in place of the [ ] that begin in line %d, or ',' in place of ':'", line)
	case strings.IndexByte(`"'{[`, c) >= 0 || c == '-' || s.atWord():
		next, _ := position(s.data, s.pos)
		return errorAt(after, "a comma is missing here, before what follows in line %d", next)
	}
	if err := s.odd(); err != nil {
		return err
	}
	return errorAt(s.pos, "expected ',' or '%c', not %s", s.closing(start), s.glimpse())
}

// noEnd is the error where more follows after the value that the file is.
func (s *scanner) noEnd(n *node) error {
	c := s.data[s.pos]
	line, _ := position(s.data, n.offset)
	switch {
	case n.kind != objectKind && n.kind != arrayKind:
	case c == '}' || c == ']':
		return errorAt(s.pos, "'%c' closes nothing; remove it, or one like it that closes too early what begins in line %d", c, line)
	case c == ',' || c == '"':
		return errorAt(s.pos, "unexpected '%c': what begins in line %d is closed already; remove a bracket that closes it too early", c, line)
	}
	if err := s.odd(); err != nil {
		return err
	}
	return errorAt(s.pos, "unexpected %s after the end of the value; a file holds one object", s.glimpse())
}

// odd is the error of a character that is at home in other languages.
func (s *scanner) odd() error {
	rest := s.data[s.pos:]
	r, _ := utf8.DecodeRune(rest)
	switch {
	case r == '#' || bytes.HasPrefix(rest, []byte("--")) || bytes.HasPrefix(rest, []byte("<!--")):
		return errorAt(s.pos, "comments begin with //, or stand in /* */")
	case r == '/':
		return errorAt(s.pos, "a single '/'; comments begin with //, or stand in /* */")
	case r == ';':
		return errorAt(s.pos, "unexpected ';'; entries are parted by commas")
	case r == '`' || strings.ContainsRune("“”„‟«»‘’", r):
		return errorAt(s.pos, `keys and strings need straight double quotes ("), not %c`, r)
	case r == '\u00a0' || r == '\u200b' || r == '\ufeff' || r == '\u3000':
		return errorAt(s.pos, "an invisible character, U+%04X; remove it", r)
	}
	return nil
}

// atWord reports whether a word or a number begins here.
func (s *scanner) atWord() bool {
	c := s.data[s.pos]
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
