package arguments

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// fits reports whether raw is certainly one JSON value that the schema allows. The result others is true if an object in raw
// has a member that its schema does not list under "properties", although the schema lists some.
func (q *quick) fits(raw []byte) (fits, others bool) {
	if q == nil {
		return false, false
	}
	r := quickReader{raw: raw, left: 8*len(raw) + 1000}
	end, ok := r.value(q, r.space(0), 0)
	return ok && r.space(end) == len(raw), r.others
}

// quickReader reads one JSON text and checks it. A method that reads a value takes the index of the value's first byte, and
// returns as end the index after its last byte. The result ok is true only if the value is certainly valid JSON that the schema
// (q) allows.
type quickReader struct {
	raw    []byte
	others bool
	left   int // how many bytes may still be read; each alternative of anyOf reads the same bytes again, also if it does not fit
}

func (r *quickReader) space(i int) int {
	start := i
	for i < len(r.raw) && (r.raw[i] == ' ' || r.raw[i] == '\n' || r.raw[i] == '\t' || r.raw[i] == '\r') {
		i++
	}
	r.left -= i - start
	return i
}

// value reads a value. depth is the nesting of the value and of the schema together.
func (r *quickReader) value(q *quick, i, depth int) (end int, ok bool) {
	if q == nil {
		q = &anything
	}
	if r.left--; i >= len(r.raw) || depth > maxDepth || r.left < 0 {
		return 0, false
	}
	switch r.raw[i] {
	case '{':
		if q.kinds&kindObject != 0 && depth < maxDepth {
			end, ok = r.object(q, i, depth)
		}
	case '[':
		if q.kinds&kindArray != 0 && depth < maxDepth {
			end, ok = r.array(q, i, depth)
		}
	case '"':
		if q.kinds&kindString != 0 {
			end, ok = r.text(q, i)
		}
	case 't':
		end, ok = r.word(i, "true"), q.kinds&kindBoolean != 0
	case 'f':
		end, ok = r.word(i, "false"), q.kinds&kindBoolean != 0
	case 'n':
		if end = r.word(i, "null"); q.nullable && end > 0 {
			return end, true
		}
		ok = q.kinds&kindNull != 0
	default:
		end, ok = r.number(q, i)
	}
	if !ok || end < 0 {
		return 0, false
	}
	for _, part := range q.all {
		if _, ok := r.value(part, i, depth+1); !ok {
			return 0, false
		}
	}
	for _, part := range q.any {
		if _, ok := r.value(part, i, depth+1); ok {
			return end, true
		}
	}
	return end, len(q.any) == 0
}

// word returns the index after a literal such as true, or -1 if the text at i is different.
func (r *quickReader) word(i int, word string) int {
	if end := i + len(word); end <= len(r.raw) && string(r.raw[i:end]) == word {
		return end
	}
	return -1
}

func (r *quickReader) object(q *quick, i, depth int) (end int, ok bool) {
	seen := uint64(0)
	if i = r.space(i + 1); i < len(r.raw) && r.raw[i] == '}' {
		return i + 1, q.required == 0
	}
	for {
		if i >= len(r.raw) || r.raw[i] != '"' {
			return 0, false
		}
		keyEnd, simple, ok := r.quoted(i)
		if !ok || !simple {
			return 0, false
		}
		key := r.raw[i+1 : keyEnd-1]
		p, known := q.properties[string(key)]
		if !known {
			// Different keys with invalid UTF-8 decode to the same key, so the long way may see one member where there are two.
			notASCII := func(c rune) bool { return c >= utf8.RuneSelf }
			if q.closed || bytes.IndexFunc(key, notASCII) >= 0 {
				return 0, false
			}
			p.value = q.additional
			r.others = r.others || len(q.properties) > 0
		}
		seen |= p.bit
		if i = r.space(keyEnd); i >= len(r.raw) || r.raw[i] != ':' {
			return 0, false
		}
		if i, ok = r.value(p.value, r.space(i+1), depth+1); !ok {
			return 0, false
		}
		if i = r.space(i); i >= len(r.raw) {
			return 0, false
		}
		switch r.raw[i] {
		case ',':
			i = r.space(i + 1)
		case '}':
			return i + 1, seen&q.required == q.required
		default:
			return 0, false
		}
	}
}

func (r *quickReader) array(q *quick, i, depth int) (end int, ok bool) {
	if i = r.space(i + 1); i < len(r.raw) && r.raw[i] == ']' {
		return i + 1, q.itemCount.least == 0
	}
	for n := 1; ; n++ {
		if i, ok = r.value(q.items, i, depth+1); !ok {
			return 0, false
		}
		if i = r.space(i); i >= len(r.raw) {
			return 0, false
		}
		switch r.raw[i] {
		case ',':
			i = r.space(i + 1)
		case ']':
			return i + 1, n >= q.itemCount.least && n <= q.itemCount.most
		default:
			return 0, false
		}
	}
}

// maxEscape is the length in bytes of the longest escape for one character: two \u escapes.
const maxEscape = 12

// text reads a string. It refuses a string that begins like JSON (with a brace or bracket), with white space or with an escape,
// because [repair] might change such a string.
func (r *quickReader) text(q *quick, i int) (end int, ok bool) {
	end, simple, ok := r.quoted(i)
	if !ok {
		return 0, false
	}
	inner := r.raw[i+1 : end-1]
	if len(inner) > 0 {
		switch first, _ := utf8.DecodeRune(inner); {
		case first == '{', first == '[', first == '\\', unicode.IsSpace(first):
			return 0, false
		}
	}
	if q.literals != nil {
		return end, simple && q.literals[string(inner)]
	}
	if q.length == anyCount {
		return end, true
	}
	most := utf8.RuneCount(inner)
	least := most
	if !simple {
		least = (len(inner) + maxEscape - 1) / maxEscape
	}
	return end, least >= q.length.least && most <= q.length.most
}

// quoted reads a JSON string. The result simple reports whether the string has no escapes.
func (r *quickReader) quoted(i int) (end int, simple, ok bool) {
	end, simple, ok = quoted(r.raw, i)
	r.left -= end - i
	return end, simple, ok
}

// quoted reads the JSON string that begins at i in raw. If it is no JSON string, end is where that was seen.
func quoted(raw []byte, i int) (end int, simple, ok bool) {
	simple = true
	for i++; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			return i + 1, simple, true
		case c < ' ':
			return i, false, false
		case c == '\\':
			simple = false
			if i++; i >= len(raw) {
				return i, false, false
			}
			switch raw[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if i++; i >= len(raw) || !hexDigit(raw[i]) {
						return i, false, false
					}
				}
			default:
				return i, false, false
			}
		}
	}
	return i, false, false
}

func hexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

// maxQuickNumber bounds the length of a number, in bytes. Any whole number of that length fits into an int64.
const maxQuickNumber = 18

// number reads a number without an exponent.
func (r *quickReader) number(q *quick, i int) (end int, ok bool) {
	start := i
	if r.raw[i] == '-' {
		i++
	}
	whole := i
	i = r.digits(i)
	if i == whole || i > whole+1 && r.raw[whole] == '0' {
		return 0, false
	}
	fraction := i < len(r.raw) && r.raw[i] == '.'
	if fraction {
		point := i
		if i = r.digits(point + 1); i == point+1 {
			return 0, false
		}
	}
	if i < len(r.raw) && r.raw[i]|0x20 == 'e' || i-start > maxQuickNumber {
		return 0, false
	}
	if fraction {
		if q.kinds&kindFraction == 0 {
			return 0, false // this also refuses 1.0, which is an integer in JSON Schema
		}
		if !q.bounded {
			return i, true
		}
		// ParseFloat may round the number, but never past a bound, since the bounds are floats.
		f, err := strconv.ParseFloat(string(r.raw[start:i]), 64)
		return i, err == nil && f > q.floor && f < q.ceiling
	}
	if q.kinds&kindInteger == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(r.raw[start:i]), 10, 64)
	return i, err == nil && (!q.bounded || n >= q.minimum && n <= q.maximum)
}

func (r *quickReader) digits(i int) int {
	start := i
	for i < len(r.raw) && r.raw[i] >= '0' && r.raw[i] <= '9' {
		i++
	}
	r.left -= i - start
	return i
}
