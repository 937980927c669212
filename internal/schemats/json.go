package schemats

import (
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of the reader. Real schemas nest fewer than 20 levels of JSON; what is
// deeper is skipped in one pass and becomes unknown.
const (
	maxJSONDepth = 300
	maxJSONBytes = 16 << 20
)

type jsonKind uint8

const (
	jNull jsonKind = iota
	jBool
	jNumber
	jString
	jArray
	jObject
	// jDeep is an array or object below maxJSONDepth that was skipped.
	jDeep
)

// value is one JSON value with its key order and its literals as written.
type value struct {
	kind jsonKind
	// text is the decoded string, or the literal of a number or boolean.
	text    string
	items   []*value
	members []member
	// index finds members of large objects by key; nil for small ones.
	index map[string]int
}

type member struct {
	key string
	val *value
}

// get finds a member; nil for a missing key or a value that is no object.
func (v *value) get(key string) *value {
	if v == nil || v.kind != jObject {
		return nil
	}
	if i := v.find(key); i >= 0 {
		return v.members[i].val
	}
	return nil
}

// find is the position of a key among the members, -1 where it is missing.
func (v *value) find(key string) int {
	if v.index != nil {
		if i, ok := v.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range v.members {
		if v.members[i].key == key {
			return i
		}
	}
	return -1
}

func (v *value) str(key string) string {
	if m := v.get(key); m != nil && m.kind == jString {
		return m.text
	}
	return ""
}

func (v *value) isTrue() bool  { return v != nil && v.kind == jBool && v.text == "true" }
func (v *value) isFalse() bool { return v != nil && v.kind == jBool && v.text == "false" }
func (v *value) isObject() bool {
	return v != nil && v.kind == jObject
}
func (v *value) isArray() bool { return v != nil && v.kind == jArray }

// count reads a small non-negative integer such as minItems; -1 where there is none.
func (v *value) count(key string) int {
	m := v.get(key)
	if m == nil || m.kind != jNumber {
		return -1
	}
	f, err := strconv.ParseFloat(m.text, 64)
	if err != nil || f < 0 || f > 1<<40 || f != float64(int64(f)) {
		return -1
	}
	return int(f)
}

var errJSON = errors.New("invalid JSON")

type reader struct {
	src []byte
	pos int
}

// readJSON reads one document. It never recurses deeper than maxJSONDepth.
func readJSON(src []byte) (*value, error) {
	if len(src) > maxJSONBytes {
		return nil, errors.New("schema too large")
	}
	r := &reader{src: src}
	v, err := r.value(0)
	if err != nil {
		return nil, err
	}
	r.space()
	if r.pos != len(r.src) {
		return nil, errJSON
	}
	return v, nil
}

func (r *reader) space() {
	for r.pos < len(r.src) {
		switch r.src[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

func (r *reader) peek() byte {
	r.space()
	if r.pos < len(r.src) {
		return r.src[r.pos]
	}
	return 0
}

func (r *reader) value(depth int) (*value, error) {
	c := r.peek()
	switch {
	case c == '{' || c == '[':
		if depth >= maxJSONDepth {
			return r.skipDeep()
		}
		if c == '{' {
			return r.object(depth)
		}
		return r.array(depth)
	case c == '"':
		s, err := r.str()
		return &value{kind: jString, text: s}, err
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	}
	for _, w := range [...]struct {
		text string
		kind jsonKind
	}{{"true", jBool}, {"false", jBool}, {"null", jNull}} {
		end := r.pos + len(w.text)
		if end <= len(r.src) && string(r.src[r.pos:end]) == w.text {
			r.pos = end
			return &value{kind: w.kind, text: w.text}, nil
		}
	}
	return nil, errJSON
}

func (r *reader) object(depth int) (*value, error) {
	v := &value{kind: jObject}
	r.pos++
	if r.peek() == '}' {
		r.pos++
		return v, nil
	}
	for {
		if r.peek() != '"' {
			return nil, errJSON
		}
		key, err := r.str()
		if err != nil {
			return nil, err
		}
		if r.peek() != ':' {
			return nil, errJSON
		}
		r.pos++
		val, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.put(key, val)
		switch r.peek() {
		case ',':
			r.pos++
		case '}':
			r.pos++
			return v, nil
		default:
			return nil, errJSON
		}
	}
}

// put adds a member; of two with one key the last value counts, as in every
// JSON parser that the upstream's own clients use.
func (v *value) put(key string, val *value) {
	if i := v.find(key); i >= 0 {
		v.members[i].val = val
		return
	}
	v.members = append(v.members, member{key, val})
	if v.index != nil {
		v.index[key] = len(v.members) - 1
	} else if len(v.members) == 16 {
		v.index = make(map[string]int, 32)
		for i := range v.members {
			v.index[v.members[i].key] = i
		}
	}
}

func (r *reader) array(depth int) (*value, error) {
	v := &value{kind: jArray}
	r.pos++
	if r.peek() == ']' {
		r.pos++
		return v, nil
	}
	for {
		item, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
		switch r.peek() {
		case ',':
			r.pos++
		case ']':
			r.pos++
			return v, nil
		default:
			return nil, errJSON
		}
	}
}

// skipDeep passes over one array or object without recursion.
func (r *reader) skipDeep() (*value, error) {
	depth := 0
	for r.pos < len(r.src) {
		switch r.src[r.pos] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			if _, err := r.str(); err != nil {
				return nil, err
			}
			continue
		}
		r.pos++
		if depth == 0 {
			return &value{kind: jDeep}, nil
		}
	}
	return nil, errJSON
}

func (r *reader) number() (*value, error) {
	start := r.pos
	for r.pos < len(r.src) {
		c := r.src[r.pos]
		if c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E' {
			r.pos++
			continue
		}
		break
	}
	text := string(r.src[start:r.pos])
	if !validNumber(text) {
		return nil, errJSON
	}
	return &value{kind: jNumber, text: text}, nil
}

// validNumber checks the grammar of RFC 8259, 6: the literal is printed as a
// TypeScript literal later, where 0123 and 1. would mean something else.
func validNumber(s string) bool {
	digits := func() bool {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n > 0
	}
	if s != "" && s[0] == '-' {
		s = s[1:]
	}
	if len(s) > 1 && s[0] == '0' && s[1] >= '0' && s[1] <= '9' {
		return false
	}
	if !digits() {
		return false
	}
	if s != "" && s[0] == '.' {
		s = s[1:]
		if !digits() {
			return false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return s == ""
}

func (r *reader) str() (string, error) {
	r.pos++
	start := r.pos
	for r.pos < len(r.src) {
		switch c := r.src[r.pos]; {
		case c == '"':
			s := r.src[start:r.pos]
			r.pos++
			if utf8.Valid(s) {
				return string(s), nil
			}
			return string([]rune(string(s))), nil
		case c == '\\':
			return r.escaped(start)
		case c < 0x20:
			return "", errJSON
		default:
			r.pos++
		}
	}
	return "", errJSON
}

// escaped reads the rest of a string that has an escape at r.pos.
func (r *reader) escaped(start int) (string, error) {
	buf := append([]byte(nil), r.src[start:r.pos]...)
	for r.pos < len(r.src) {
		c := r.src[r.pos]
		r.pos++
		switch {
		case c == '"':
			if utf8.Valid(buf) {
				return string(buf), nil
			}
			return string([]rune(string(buf))), nil
		case c < 0x20:
			return "", errJSON
		case c != '\\':
			buf = append(buf, c)
			continue
		}
		if r.pos >= len(r.src) {
			break
		}
		c = r.src[r.pos]
		r.pos++
		switch c {
		case '"', '\\', '/':
			buf = append(buf, c)
		case 'b':
			buf = append(buf, '\b')
		case 'f':
			buf = append(buf, '\f')
		case 'n':
			buf = append(buf, '\n')
		case 'r':
			buf = append(buf, '\r')
		case 't':
			buf = append(buf, '\t')
		case 'u':
			u, ok := r.unicode()
			if !ok {
				return "", errJSON
			}
			buf = utf8.AppendRune(buf, u)
		default:
			return "", errJSON
		}
	}
	return "", errJSON
}

// unicode reads the digits after \u, and the second half of a pair. A lone
// surrogate becomes U+FFFD.
func (r *reader) unicode() (rune, bool) {
	u, ok := r.hex4(r.pos)
	if !ok {
		return 0, false
	}
	r.pos += 4
	if !utf16.IsSurrogate(u) {
		return u, true
	}
	if r.pos+6 <= len(r.src) && r.src[r.pos] == '\\' && r.src[r.pos+1] == 'u' {
		if low, ok := r.hex4(r.pos + 2); ok {
			if pair := utf16.DecodeRune(u, low); pair != utf8.RuneError {
				r.pos += 6
				return pair, true
			}
		}
	}
	return utf8.RuneError, true
}

func (r *reader) hex4(at int) (rune, bool) {
	if at+4 > len(r.src) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(r.src[at:at+4]), 16, 16)
	return rune(n), err == nil
}

// appendJSON writes v minified, for a comment: non-printing characters escaped,
// and cut off after max bytes (the second result is false then).
func appendJSON(b []byte, v *value, max int) ([]byte, bool) {
	switch v.kind {
	case jNull, jBool, jNumber:
		b = append(b, v.literal()...)
	case jString:
		b = appendQuoted(b, v.text)
	case jArray:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			var ok bool
			if b, ok = appendJSON(b, item, max); !ok {
				return b, false
			}
		}
		b = append(b, ']')
	case jObject:
		b = append(b, '{')
		for i, m := range v.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendQuoted(b, m.key)
			b = append(b, ':')
			var ok bool
			if b, ok = appendJSON(b, m.val, max); !ok {
				return b, false
			}
		}
		b = append(b, '}')
	case jDeep:
		return b, false
	}
	return b, len(b) <= max
}

func (v *value) literal() string {
	if v.kind == jNull {
		return "null"
	}
	return v.text
}
