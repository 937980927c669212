package wire

import (
	"bytes"
	"math/bits"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// maxNesting bounds the nesting of values, as in encoding/json.
const maxNesting = 10_000

// Valid reports whether data is exactly one JSON value in valid UTF-8.
func Valid(data []byte) bool {
	s := scanner{src: view(data)}
	return s.value() && s.end() && s.utf8()
}

// Compact removes the white space between the tokens of one JSON value. All other bytes are kept, also escapes and
// invalid UTF-8 in strings. ok is false if text is not exactly one JSON value.
func Compact(text string) (compact string, ok bool) {
	s := scanner{src: text, compact: true}
	if !s.value() || !s.end() {
		return "", false
	}
	return s.text(), true
}

// OneLine makes a message with line breaks one line, by removing the white space between its tokens: a line break would end the
// message over stdio and in event streams. A message that is not JSON stays as it is.
func OneLine(message []byte) []byte {
	if bytes.IndexByte(message, '\n') >= 0 || bytes.IndexByte(message, '\r') >= 0 {
		if line, ok := Compact(string(message)); ok {
			return []byte(line)
		}
	}
	return message
}

// First reads the JSON value at the beginning of text; other text may follow. end is the index after the value. If ok
// is false, end is where reading stopped.
func First(text string) (end int, ok bool) {
	s := scanner{src: text}
	ok = s.value() && s.utf8()
	return s.pos, ok
}

// view returns data as a string without a copy. This is safe because no code changes a message after it was read, or
// reuses a buffer whose content was returned.
func view(data []byte) string { return unsafe.String(unsafe.SliceData(data), len(data)) }

// token is the kind of a JSON token. Commas and colons are not tokens; they are read together with the token next to
// them.
type token byte

const (
	tokenBad   token = iota // invalid JSON
	tokenValue              // only advance returns it: a value begins at pos
	tokenObject
	tokenArray
	tokenClose
	tokenKey
	tokenString
	tokenNumber
	tokenTrue
	tokenFalse
	tokenNull
)

type expected byte

const (
	expectValue expected = iota
	expectFirst          // the first member or item of an array or object, or its end
	expectAfter          // a comma, or the end of an array or object
)

// scanner reads JSON strictly, token by token. It has no recursion, so deep nesting does not use up the stack. It is the only
// code of mcpx that implements the whole grammar of JSON.
type scanner struct {
	src      string
	start    int // where the last token starts
	pos      int // where the next byte is
	after    int // where the last key ends; pos is after its colon
	expected expected
	escaped  bool   // the last string or key has a backslash
	seen     uint64 // bitwise or of all bytes of strings; a high bit means that some are not ASCII
	open     brackets

	compact bool   // whether to collect the text without white space
	kept    []byte // kept[:length] is the compact text of src[:from]
	length  int
	from    int
}

// brackets is the stack of '{' and '[' of the open arrays and objects. The first 32 are in an array: with only a
// slice, every scanner would be allocated on the heap.
type brackets struct {
	depth int
	first [32]byte
	more  []byte
}

func (b *brackets) push(c byte) {
	if b.depth < len(b.first) {
		b.first[b.depth] = c
	} else {
		b.more = append(b.more[:b.depth-len(b.first)], c)
	}
	b.depth++
}

// last returns the innermost bracket; there must be one.
func (b *brackets) last() byte {
	if i := b.depth - 1; i < len(b.first) {
		return b.first[i]
	}
	return b.more[b.depth-1-len(b.first)]
}

func (s *scanner) value() bool {
	depth := s.open.depth
	return s.finish(s.begin(), depth)
}

// finish reads the rest of a value whose first token is t and which began at the given nesting depth.
func (s *scanner) finish(t token, depth int) bool {
	for t != tokenBad && s.open.depth > depth {
		t = s.next()
	}
	return t != tokenBad
}

// object reads one whole value. If the value is an object, it calls member after each key, and member must read the
// member's value. key may share memory with src.
func (s *scanner) object(member func(key string) bool) bool {
	depth := s.open.depth
	if t := s.begin(); t != tokenObject {
		return s.finish(t, depth)
	}
	for {
		switch s.advance() {
		case tokenClose:
			return true
		case tokenKey:
			if !member(s.lastKey()) {
				return false
			}
		default:
			return false
		}
	}
}

// lastKey returns the last key. It may share memory with src.
func (s *scanner) lastKey() string {
	if s.escaped {
		key, _, _ := decode(s.src[s.start:s.after])
		return key
	}
	return s.src[s.start+1 : s.after-1]
}

// end reports whether only white space follows.
func (s *scanner) end() bool {
	i := s.pos
	for i < len(s.src) && space[s.src[i]] {
		i++
	}
	return i == len(s.src)
}

// utf8 reports whether src is valid UTF-8. src must be completely read. If all strings are ASCII, all of src is ASCII, because
// JSON allows other characters only in strings. Otherwise utf8 checks all of src.
func (s *scanner) utf8() bool {
	return s.seen&highBits == 0 || utf8.ValidString(s.src)
}

// text returns the text up to pos without white space between tokens.
func (s *scanner) text() string {
	rest := s.src[s.from:s.pos]
	if s.length == 0 {
		return rest
	}
	s.length += copy(s.kept[s.length:], rest)
	return view(s.kept[:s.length])
}

var space = [256]bool{' ': true, '\t': true, '\n': true, '\r': true}

// peek skips white space and returns the next byte without reading it, or 0 at the end of src.
func (s *scanner) peek() (c byte) {
	if s.pos < len(s.src) {
		c = s.src[s.pos]
	}
	if c > ' ' {
		return c
	}
	return s.skipSpace()
}

func (s *scanner) skipSpace() byte {
	i := s.pos
	for i < len(s.src) && space[s.src[i]] {
		i++
	}
	if s.compact && i > s.pos {
		if s.kept == nil && s.pos > s.from {
			s.kept = make([]byte, len(s.src)-s.from)
		}
		s.length += copy(s.kept[s.length:], s.src[s.from:s.pos])
		s.from = i
	}
	s.pos = i
	if i == len(s.src) {
		return 0
	}
	return s.src[i]
}

func (s *scanner) next() token {
	if t := s.advance(); t != tokenValue {
		return t
	}
	return s.begin()
}

// advance goes on to the next value of the open array or object. It reads past a comma if one comes first, and returns tokenValue.
// In an object it also reads past the key, and returns tokenKey. At the end it reads past the closing bracket, and returns
// tokenClose.
func (s *scanner) advance() token {
	if s.expected == expectValue {
		return tokenValue
	}
	c, open := s.peek(), s.open.last()
	if c == open+2 { // '}' is '{'+2, ']' is '['+2
		s.open.depth--
		s.pos++
		s.expected = expectAfter
		return tokenClose
	}
	if s.expected == expectAfter {
		if c != ',' {
			return tokenBad
		}
		s.pos++
		c = s.peek()
	}
	if open == '{' {
		return s.key(c)
	}
	return tokenValue
}

func (s *scanner) begin() token {
	c := s.peek()
	s.start = s.pos
	s.expected = expectAfter
	switch {
	case c == '"':
		if s.str() {
			return tokenString
		}
		return tokenBad
	case c == '{' || c == '[':
		return s.opening(c)
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case c == 't':
		return s.word("true", tokenTrue)
	case c == 'f':
		return s.word("false", tokenFalse)
	case c == 'n':
		return s.word("null", tokenNull)
	}
	return tokenBad
}

func (s *scanner) opening(c byte) token {
	if s.open.depth == maxNesting {
		return tokenBad
	}
	s.open.push(c)
	s.pos++
	s.expected = expectFirst
	if c == '{' {
		return tokenObject
	}
	return tokenArray
}

func (s *scanner) key(c byte) token {
	s.start = s.pos
	if c != '"' || !s.str() {
		return tokenBad
	}
	s.after = s.pos
	if s.peek() != ':' {
		return tokenBad
	}
	s.pos++
	s.expected = expectValue
	return tokenKey
}

func (s *scanner) word(word string, t token) token {
	if !strings.HasPrefix(s.src[s.pos:], word) {
		return tokenBad
	}
	s.pos += len(word)
	return t
}

const (
	eachByte = 0x0101010101010101
	highBits = 0x8080808080808080
)

// word8 loads the eight bytes at src[i], the first one lowest.
func word8(src string, i int) uint64 {
	b := src[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// special sets the high bit of each byte of w that is a control character, a quote or a backslash. Only
// the lowest of these high bits is reliable; the others may be wrong.
func special(w uint64) uint64 {
	return ((w - eachByte*' ') | ((w ^ eachByte*'"') - eachByte) | ((w ^ eachByte*'\\') - eachByte)) &^ w & highBits
}

// str reads the string that starts at pos, eight bytes at a time.
func (s *scanner) str() bool {
	src, i := s.src, s.pos+1
	s.escaped = false
	for {
		for i+8 <= len(src) {
			w := word8(src, i)
			s.seen |= w
			if marks := special(w); marks != 0 {
				i += bits.TrailingZeros64(marks) / 8
				break
			}
			i += 8
		}
		if i >= len(src) {
			return false
		}
		switch c := src[i]; {
		case c == '"':
			s.pos = i + 1
			return true
		case c < ' ':
			return false
		case c == '\\':
			s.escaped = true
			if i+1 < len(src) && unescaped[src[i+1]] != 0 {
				i += 2
				continue
			}
			if _, ok := hex4(src[i:]); !ok {
				return false
			}
			i += 6
		default: // one of the last seven bytes of src
			s.seen |= uint64(c)
			i++
		}
	}
}

func (s *scanner) number() token {
	i := s.pos
	if s.src[i] == '-' {
		i++
	}
	whole := i
	i = skipDigits(s.src, i)
	if i == whole || i > whole+1 && s.src[whole] == '0' {
		return tokenBad
	}
	if i < len(s.src) && s.src[i] == '.' {
		fraction := i + 1
		if i = skipDigits(s.src, fraction); i == fraction {
			return tokenBad
		}
	}
	if i < len(s.src) && s.src[i]|0x20 == 'e' {
		i++
		if i < len(s.src) && (s.src[i] == '+' || s.src[i] == '-') {
			i++
		}
		exponent := i
		if i = skipDigits(s.src, exponent); i == exponent {
			return tokenBad
		}
	}
	s.pos = i
	return tokenNumber
}

func skipDigits(s string, i int) int {
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return i
}
