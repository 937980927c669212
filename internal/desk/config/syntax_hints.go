package config

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// explain is called when hujson has refused data with the error err. It returns an error that says what is wrong with data, and
// what the user can do. It uses only the position in err, because the text of err gives no advice and may quote a secret. The
// errors in this file quote at most one character.
func explain(data []byte, err error) error {
	var line, column int
	if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); scanErr != nil {
		return errorAt(0, "it cannot be read")
	}
	refused := offsetOf(data, line, column)
	s := scanner{data: data}
	for s.next() && s.pos < refused && s.end <= refused && !s.isWrong() {
	}
	if s.pos > refused { // hujson's position is in a comment; the scanner has skipped that
		s.pos = refused
	}
	if s.pos == len(data) {
		return s.ended()
	}
	if bytes.HasPrefix(data[s.pos:], []byte("/*")) {
		return errorAt(s.pos, "the comment that begins here does not end; close it with */")
	}
	expects := s.expects()
	if wrong := s.brokenString(); wrong != nil && (expects == aKey || expects == aValue) {
		return wrong
	}
	switch expects {
	case aKey:
		return s.noKey()
	case aColon:
		return errorAt(s.pos, "a colon is missing after the key: expected ':', not %s", s.glimpse())
	case aComma:
		return s.noComma()
	case theEnd:
		return s.noEnd()
	}
	return s.noValue()
}

// isWrong reports whether the current token is an invalid string, or stands where a key is expected but is neither a string nor the
// closing bracket of the object. hujson may report a position after such a token.
func (s *scanner) isWrong() bool {
	c := s.data[s.pos]
	return s.brokenString() != nil || s.expects() == aKey && c != '"' && c != '}'
}

// offsetOf converts the position in an error of hujson to an offset. Columns count bytes in these errors.
func offsetOf(data []byte, line, column int) int {
	start := 0
	for range line - 1 {
		end := bytes.IndexByte(data[start:], '\n')
		if end < 0 {
			return len(data)
		}
		start += end + 1
	}
	return min(start+column-1, len(data))
}

// inside describes the object or array around the current token: its name for messages, the line where it begins, and its
// closing bracket. It may only be called if there is one.
func (s *scanner) inside() (name string, line int, closing byte) {
	start := s.open[len(s.open)-1]
	line, _ = position(s.data, start)
	if s.data[start] == '{' {
		return "object", line, '}'
	}
	return "array", line, ']'
}

// glimpse returns the first character of the current token in quotes, or "end of file", for an error.
func (s *scanner) glimpse() string {
	if s.pos >= len(s.data) {
		return "end of file"
	}
	r, _ := utf8.DecodeRune(s.data[s.pos:])
	return strconv.QuoteRune(r)
}

// ended returns the error for a file that ends too early.
func (s *scanner) ended() error {
	switch expects := s.expects(); {
	case s.last == 0:
		return errorAt(s.pos, emptyFile)
	case expects == aColon:
		return errorAt(s.pos, "a colon is missing after the key: expected ':', not %s", s.glimpse())
	case s.last == ':':
		return errorAt(s.pos, "the file ends where a value is expected; write the value, and close what is open")
	}
	what, line, closing := s.inside()
	return errorAt(s.pos, "the file ends, but the %s that begins in line %d is not closed; add '%c'", what, line, closing)
}

// brokenString returns an error if the current token is an invalid string. It returns nil if the string is valid, or if the
// token is not a string.
func (s *scanner) brokenString() error {
	if s.data[s.pos] != '"' {
		return nil
	}
	for i := s.pos + 1; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			return nil
		case c == '\n' || c == '\r':
			return errorAt(s.pos, `the string that begins here does not end in its line; add the closing "`)
		case c < 0x20:
			return errorAt(i, "a control character in a string has to be written as \\u%04x", c)
		case c == '\\' && i+1 == len(s.data):
			return errorAt(i, `the string does not end; add the closing "`)
		case c == '\\' && !isEscape(s.data[i+1:]):
			return errorAt(i, `invalid escape (a backslash itself is written as \\)`)
		case c == '\\':
			i++
		}
	}
	return errorAt(s.pos, `the string that begins here does not end; add the closing "`)
}

// isEscape reports whether text, the bytes after a backslash, begins with the rest of a valid escape sequence.
func isEscape(text []byte) bool {
	if text[0] != 'u' {
		return strings.IndexByte(`"\/bfnrt`, text[0]) >= 0
	}
	if len(text) < 5 {
		return false
	}
	_, err := strconv.ParseUint(string(text[1:5]), 16, 16)
	return err == nil
}

// noKey returns the error for a token where a key or the end of the object is expected.
func (s *scanner) noKey() error {
	_, line, _ := s.inside()
	switch c := s.data[s.pos]; {
	case c == ',':
		return errorAt(s.pos, "a comma too many; remove it")
	case c == ']' || c == ')':
		return errorAt(s.pos, "the object that begins in line %d is not closed; expected '}', not '%c'", line, c)
	case c == '{' || c == '[':
		return errorAt(s.pos, "a key is missing before '%c'; write \"name\": before it", c)
	case c == '\'':
		return errorAt(s.pos, `keys need double quotes ("), not single ones`)
	case isWord(c):
		return errorAt(s.pos, `keys need double quotes ("); put them around this one`)
	}
	if err := s.foreignCharacter(); err != nil {
		return err
	}
	return errorAt(s.pos, "expected a key in double quotes or '}', not %s", s.glimpse())
}

// noValue returns the error for a token where a value is expected.
func (s *scanner) noValue() error {
	switch c := s.data[s.pos]; {
	case c == ',' && (s.last == '[' || s.last == ','):
		return errorAt(s.pos, "a comma too many; remove it")
	case c == ',':
		return errorAt(s.pos, "a value is missing before this comma")
	case c == '}' || c == ']' || c == ')':
		return errorAt(s.pos, "a value is missing before '%c'", c)
	case c == '\'':
		return errorAt(s.pos, `strings need double quotes ("), not single ones`)
	case c == '-' && !bytes.HasPrefix(s.data[s.pos:], []byte("--")) || c >= '0' && c <= '9':
		return errorAt(s.pos, "invalid number; numbers are written like 5, -5, 0.5 or 1e3")
	case isWord(c):
		// The error does not quote the word, because it may be a secret for which the user forgot the quotes.
		return errorAt(s.pos, "unknown word; only true, false and null are written without double quotes (\")")
	}
	if err := s.foreignCharacter(); err != nil {
		return err
	}
	return errorAt(s.pos, "expected a value, not %s", s.glimpse())
}

// noComma returns the error for a token where a comma or a closing bracket is expected.
func (s *scanner) noComma() error {
	what, line, closing := s.inside()
	c := s.data[s.pos]
	switch {
	case c == '}' || c == ']' || c == ')':
		return errorAt(s.pos, "the %s that begins in line %d is not closed; expected '%c' before '%c'", what, line, closing, c)
	case c == ':' && what == "array":
		return errorAt(s.pos, "an array has no keys; write { } in place of the [ ] that begin in line %d, or ',' in place of ':'", line)
	case strings.IndexByte(`"'{[`, c) >= 0 || c == '-' || isWord(c):
		next, _ := position(s.data, s.pos)
		return errorAt(s.after, "a comma is missing here, before what follows in line %d", next)
	}
	if err := s.foreignCharacter(); err != nil {
		return err
	}
	return errorAt(s.pos, "expected ',' or '%c', not %s", closing, s.glimpse())
}

// noEnd returns the error for a token after the end of the value.
func (s *scanner) noEnd() error {
	start := s.space(0)
	c, first := s.data[s.pos], s.data[start]
	line, _ := position(s.data, start)
	switch {
	case first != '{' && first != '[':
	case c == '}' || c == ']':
		return errorAt(s.pos, "'%c' closes nothing; remove it, or one like it that closes too early what begins in line %d", c, line)
	case c == ',' || c == '"':
		return errorAt(s.pos, "unexpected '%c': what begins in line %d is closed already; remove a bracket that closes it too early", c, line)
	}
	if err := s.foreignCharacter(); err != nil {
		return err
	}
	return errorAt(s.pos, "unexpected %s after the end of the value; a file holds one object", s.glimpse())
}

// foreignCharacter returns an error if the current token begins with a character that JSON does not have, but other languages or
// text from word processors have. It returns nil for other characters.
func (s *scanner) foreignCharacter() error {
	rest := s.data[s.pos:]
	r, _ := utf8.DecodeRune(rest)
	switch {
	case r == '#' || bytes.HasPrefix(rest, []byte("--")) || bytes.HasPrefix(rest, []byte("<!--")):
		return errorAt(s.pos, "comments begin with //, or are enclosed in /* */")
	case r == '/':
		return errorAt(s.pos, "a single '/'; comments begin with //, or are enclosed in /* */")
	case r == ';':
		return errorAt(s.pos, "unexpected ';'; entries are separated by commas")
	case r == '`' || strings.ContainsRune("“”„‟«»‘’", r):
		return errorAt(s.pos, `keys and strings need straight double quotes ("), not %c`, r)
	case r == '\u00a0' || r == '\u200b' || r == '\ufeff' || r == '\u3000' || r == '\u2028' || r == '\u2029':
		return errorAt(s.pos, "an invisible character, U+%04X; remove it", r)
	}
	return nil
}
