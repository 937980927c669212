package compress

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxNesting is the nesting that the scanner follows, the same as encoding/json.
const maxNesting = 10_000

var (
	errSyntax  = errors.New("not valid JSON")
	errNesting = errors.New("nested too deeply")
)

// Minify removes insignificant white space; every literal and every escape stays as written, invalid
// UTF-8 inside strings too. It reports false when raw is not exactly one JSON value. out may share
// no memory with raw.
func Minify(raw []byte) (out []byte, ok bool) {
	compact, ok := minify(string(raw))
	if !ok {
		return nil, false
	}
	return []byte(compact), true
}

// minify is [Minify] for strings; without white space to remove, it returns a part of s.
func minify(s string) (string, bool) {
	m := scanner{src: s, keep: true}
	if m.value() != nil {
		return "", false
	}
	m.blank()
	if m.pos != len(s) {
		return "", false
	}
	return m.text(), true
}

// Items splits JSON into its items, in order, without decoding them: one array gives its items,
// anything else is read as a sequence of values (JSON Lines; a single value is one item). The items
// are parts of raw as they were written.
func Items(raw []byte) ([]json.RawMessage, error) {
	sc := scanner{src: string(raw)}
	var values []json.RawMessage
	for {
		sc.blank()
		if sc.pos == len(raw) {
			break
		}
		start := sc.pos
		if err := sc.value(); err != nil {
			return nil, fmt.Errorf("reading JSON at byte %d: %w", sc.pos, err)
		}
		values = append(values, json.RawMessage(raw[start:sc.pos:sc.pos]))
	}
	switch {
	case len(values) == 0:
		return nil, fmt.Errorf("reading JSON: %w", errSyntax)
	case len(values) == 1 && values[0][0] == '[':
		return elements(values[0]), nil
	}
	return values, nil
}

// elements splits one valid array.
func elements(array json.RawMessage) []json.RawMessage {
	sc := scanner{src: string(array), pos: 1}
	items := []json.RawMessage{}
	for {
		sc.blank()
		switch array[sc.pos] {
		case ']':
			return items
		case ',':
			sc.pos++
			sc.blank()
		}
		start := sc.pos
		if sc.value() != nil {
			return items // not reached: the array is valid
		}
		items = append(items, array[start:sc.pos:sc.pos])
	}
}

// scanner checks the syntax of one JSON value after the other and, with keep, collects them without
// their white space. It never recurses.
type scanner struct {
	src  string
	pos  int
	keep bool
	out  strings.Builder
	from int // start of what is not in out yet

	stack []byte // open containers: '{' or '['
}

// text is what was scanned, without white space.
func (s *scanner) text() string {
	rest := s.src[s.from:s.pos]
	if s.out.Len() == 0 {
		return rest
	}
	s.out.WriteString(rest)
	s.from = s.pos
	return s.out.String()
}

// blank skips white space.
func (s *scanner) blank() {
	i := s.pos
	for i < len(s.src) && isBlank(s.src[i]) {
		i++
	}
	if i == s.pos {
		return
	}
	if s.keep {
		if s.out.Cap() == 0 && s.pos > s.from {
			s.out.Grow(len(s.src) - s.from)
		}
		s.out.WriteString(s.src[s.from:s.pos])
		s.from = i
	}
	s.pos = i
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// next skips white space and gives the byte there, 0 at the end.
func (s *scanner) next() byte {
	if s.pos < len(s.src) && s.src[s.pos] > ' ' {
		return s.src[s.pos]
	}
	s.blank()
	if s.pos == len(s.src) {
		return 0
	}
	return s.src[s.pos]
}

// value scans one value; pos is then behind it.
func (s *scanner) value() error {
	base := len(s.stack)
	for {
		opened, err := s.begin()
		if err != nil {
			return err
		}
		if opened {
			continue
		}
		more, err := s.end(base)
		if err != nil || !more {
			return err
		}
	}
}

// begin scans a scalar, an empty container, or the start of a container up to its first value (opened).
func (s *scanner) begin() (opened bool, err error) {
	c := s.next()
	switch {
	case c == '{' || c == '[':
		if len(s.stack) == maxNesting {
			return false, errNesting
		}
		s.pos++
		if n := s.next(); n == c+2 { // '}' is '{'+2, ']' is '['+2
			s.pos++
			return false, nil
		}
		s.stack = append(s.stack, c)
		if c == '{' {
			err = s.key()
		}
		return true, err
	case c == '"':
		return false, s.str()
	case c == '-' || '0' <= c && c <= '9':
		return false, s.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(s.src[s.pos:], word) {
			s.pos += len(word)
			return false, nil
		}
	}
	return false, errSyntax
}

// end scans what follows a value: the ends of containers, or a comma and a key (more).
func (s *scanner) end(base int) (more bool, err error) {
	for len(s.stack) > base {
		open := s.stack[len(s.stack)-1]
		switch s.next() {
		case ',':
			s.pos++
			if open == '{' {
				err = s.key()
			}
			return true, err
		case open + 2:
			s.pos++
			s.stack = s.stack[:len(s.stack)-1]
		default:
			return false, errSyntax
		}
	}
	return false, nil
}

func (s *scanner) key() error {
	if s.next() != '"' {
		return errSyntax
	}
	if err := s.str(); err != nil {
		return err
	}
	if s.next() != ':' {
		return errSyntax
	}
	s.pos++
	return nil
}

// str scans a string; pos is at its opening quote.
func (s *scanner) str() error {
	for i := s.pos + 1; i < len(s.src); i++ {
		switch c := s.src[i]; {
		case c == '"':
			s.pos = i + 1
			return nil
		case c < ' ':
			return errSyntax
		case c == '\\':
			i++
			if i == len(s.src) {
				return errSyntax
			}
			switch s.src[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if _, ok := hex4(s.src, i+1); !ok {
					return errSyntax
				}
				i += 4
			default:
				return errSyntax
			}
		}
	}
	return errSyntax
}

// hex4 reads the four hexadecimal digits of a \u escape at s[i].
func hex4(s string, i int) (rune, bool) {
	if i+4 > len(s) {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[i : i+4]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// number scans a number; pos is at its first byte.
func (s *scanner) number() error {
	i := s.pos
	if s.src[i] == '-' {
		i++
	}
	whole := i
	i = skipDigits(s.src, i)
	if i == whole || i > whole+1 && s.src[whole] == '0' {
		return errSyntax
	}
	if i < len(s.src) && s.src[i] == '.' {
		fraction := i + 1
		if i = skipDigits(s.src, fraction); i == fraction {
			return errSyntax
		}
	}
	if i < len(s.src) && s.src[i]|0x20 == 'e' {
		i++
		if i < len(s.src) && (s.src[i] == '+' || s.src[i] == '-') {
			i++
		}
		exponent := i
		if i = skipDigits(s.src, exponent); i == exponent {
			return errSyntax
		}
	}
	s.pos = i
	return nil
}

func skipDigits(s string, i int) int {
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return i
}
