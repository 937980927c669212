package executor_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// node is a JSON value, parsed without any of the code under test. Members keep their order, including duplicates; numbers keep
// their spelling; strings are decoded, a lone surrogate to the three bytes that UTF-8 would use for it.
type node struct {
	kind byte   // { [ " or 0 (a number), or the first letter of true, false or null
	raw  string // the original spelling
	text string // the decoded text, only of a string
	keys []string
	kids []*node
}

// readJSON parses a text that is exactly one JSON value. It returns nil for any other text.
func readJSON(s string) *node {
	r := &jsonReader{s: s}
	r.space()
	n := r.value()
	r.space()
	if r.bad || r.i != len(s) {
		return nil
	}
	return n
}

type jsonReader struct {
	s   string
	i   int
	bad bool
}

func (r *jsonReader) peek() byte {
	if r.i < len(r.s) {
		return r.s[r.i]
	}
	return 0
}

func (r *jsonReader) space() {
	for r.i < len(r.s) && strings.IndexByte(" \t\r\n", r.s[r.i]) >= 0 {
		r.i++
	}
}

func (r *jsonReader) value() *node {
	start := r.i
	n := &node{kind: r.peek()}
	switch n.kind {
	case '{', '[':
		r.container(n)
	case '"':
		n.text = r.str()
	case 't':
		r.literal("true")
	case 'f':
		r.literal("false")
	case 'n':
		r.literal("null")
	default:
		n.kind = '0'
		r.number()
	}
	if r.bad {
		return n
	}
	n.raw = r.s[start:r.i]
	return n
}

func (r *jsonReader) container(n *node) {
	r.i++
	r.space()
	if r.peek() == n.kind+2 {
		r.i++
		return
	}
	for !r.bad {
		if n.kind == '{' {
			r.space()
			n.keys = append(n.keys, r.str())
			r.space()
			r.literal(":")
		}
		r.space()
		n.kids = append(n.kids, r.value())
		r.space()
		if r.peek() == n.kind+2 {
			r.i++
			return
		}
		r.literal(",")
	}
}

func (r *jsonReader) literal(want string) {
	if !strings.HasPrefix(r.s[r.i:], want) {
		r.bad = true
		return
	}
	r.i += len(want)
}

func (r *jsonReader) digits() {
	start := r.i
	for r.peek() >= '0' && r.peek() <= '9' {
		r.i++
	}
	r.bad = r.bad || r.i == start
}

func (r *jsonReader) number() {
	if r.peek() == '-' {
		r.i++
	}
	if r.peek() == '0' {
		r.i++
	} else {
		r.digits()
	}
	if r.peek() == '.' {
		r.i++
		r.digits()
	}
	if r.peek()|0x20 == 'e' {
		r.i++
		if r.peek() == '+' || r.peek() == '-' {
			r.i++
		}
		r.digits()
	}
}

func (r *jsonReader) str() string {
	if r.peek() != '"' {
		r.bad = true
		return ""
	}
	var out []byte
	for r.i++; r.i < len(r.s); r.i++ {
		switch c := r.s[r.i]; {
		case c == '"':
			r.i++
			return string(out)
		case c < ' ':
			r.bad = true
			return ""
		case c == '\\':
			out = r.escape(out)
		default:
			out = append(out, c)
		}
	}
	r.bad = true
	return ""
}

// escape reads the escape sequence at i. Afterwards i is at its last byte.
func (r *jsonReader) escape(out []byte) []byte {
	r.i++
	c := r.peek()
	if at := strings.IndexByte(`"\/bfnrt`, c); at >= 0 {
		return append(out, "\"\\/\b\f\n\r\t"[at])
	}
	unit := r.unit(r.i)
	if c != 'u' || unit < 0 {
		r.bad = true
		return out
	}
	r.i += 4
	if unit >= 0xd800 && unit < 0xdc00 && strings.HasPrefix(r.s[r.i+1:], `\u`) {
		if low := r.unit(r.i + 2); low >= 0xdc00 && low < 0xe000 {
			r.i += 6
			return utf8.AppendRune(out, (unit-0xd800)<<10|(low-0xdc00)+0x10000)
		}
	}
	if unit >= 0xd800 && unit < 0xe000 {
		return append(out, 0xe0|byte(unit>>12), 0x80|byte(unit>>6)&0x3f, 0x80|byte(unit)&0x3f)
	}
	return utf8.AppendRune(out, unit)
}

// unit reads the four hex digits of a \u escape; at is the position of the u. It returns -1 if they are missing.
func (r *jsonReader) unit(at int) rune {
	if at+5 > len(r.s) {
		return -1
	}
	n, err := strconv.ParseUint(r.s[at+1:at+5], 16, 32)
	if err != nil || strings.ContainsAny(r.s[at+1:at+5], "+-_") {
		return -1
	}
	return rune(n)
}

// last returns the value of a key, the last one if the key is repeated; nil if there is none.
func (n *node) last(key string) *node {
	var found *node
	if n != nil && n.kind == '{' {
		for i, k := range n.keys {
			if k == key {
				found = n.kids[i]
			}
		}
	}
	return found
}

// canonical returns n as JSON for comparison. It is the same for two values only if their numbers have the same spelling and
// their objects have the same keys in the same order, duplicate keys included. The nodes in without are left out.
func (n *node) canonical(without ...*node) string {
	var out strings.Builder
	n.write(&out, func(literal string) string { return literal }, without)
	return out.String()
}

// floats is like canonical, but with numbers rounded to float64.
func (n *node) floats() string {
	var out strings.Builder
	n.write(&out, func(literal string) string {
		f, err := strconv.ParseFloat(literal, 64)
		if err != nil {
			return "beyond"
		}
		return strconv.FormatFloat(f, 'g', -1, 64)
	}, nil)
	return out.String()
}

func (n *node) write(out *strings.Builder, number func(string) string, without []*node) {
	switch n.kind {
	case '"':
		out.WriteString(spell(n.text))
		return
	case '0':
		out.WriteString(number(n.raw))
		return
	case '{', '[':
	default:
		out.WriteString(n.raw)
		return
	}
	out.WriteByte(n.kind)
	first := true
	for i, kid := range n.kids {
		if isOneOf(kid, without) {
			continue
		}
		if !first {
			out.WriteByte(',')
		}
		first = false
		if n.kind == '{' {
			out.WriteString(spell(n.keys[i]) + ":")
		}
		kid.write(out, number, without)
	}
	out.WriteByte(n.kind + 2)
}

func isOneOf(n *node, list []*node) bool {
	for _, one := range list {
		if one == n {
			return true
		}
	}
	return false
}

// spell returns a decoded string as a JSON string literal, with lone surrogates as escapes.
func spell(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1 && i+3 <= len(s) && s[i] == 0xed:
			fmt.Fprintf(&out, `\u%04x`, rune(s[i]&0xf)<<12|rune(s[i+1]&0x3f)<<6|rune(s[i+2]&0x3f))
			size = 3
		case r < ' ' || r == '"' || r == '\\':
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteString(s[i : i+size])
		}
		i += size
	}
	return out.String() + `"`
}

// numbers returns the number literals in a value.
func (n *node) numbers() []string {
	if n.kind == '0' {
		return []string{n.raw}
	}
	var all []string
	for _, kid := range n.kids {
		all = append(all, kid.numbers()...)
	}
	return all
}

// halves matches the escape of a lone surrogate, as spell writes it.
var halves = regexp.MustCompile(`\\ud[89a-f][0-9a-f]{2}`)

// sorted returns an object as Go's map[string]any would have it: sorted, and without duplicate keys.
func (n *node) sorted() *node {
	members := make(map[string]*node)
	for i, key := range n.keys {
		members[readJSON(halves.ReplaceAllString(spell(key), `\ufffd`)).text] = n.kids[i]
	}
	out := &node{kind: '{'}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		out.keys, out.kids = append(out.keys, key), append(out.kids, members[key])
	}
	return out
}
