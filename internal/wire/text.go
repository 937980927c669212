package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Text decodes a JSON string, which is valid. Long strings full of escapes, as
// JSON inside of JSON is, decode several times as fast as with encoding/json.
// What is no string yields ok = false.
func Text(quoted []byte) (text string, ok bool) {
	if len(quoted) < 2 || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
		return "", false
	}
	in := quoted[1 : len(quoted)-1]
	at := bytes.IndexByte(in, '\\')
	if at < 0 {
		return string(in), utf8.Valid(in)
	}
	out := make([]byte, 0, len(in))
	for at >= 0 {
		out = append(out, in[:at]...)
		if at+1 >= len(in) {
			return "", false
		}
		plain := unescaped[in[at+1]]
		if plain == 0 { // \u, or nothing that JSON knows
			var slow string
			err := json.Unmarshal(quoted, &slow)
			return slow, err == nil
		}
		out = append(out, plain)
		in = in[at+2:]
		at = nextEscape(in)
	}
	out = append(out, in...)
	return string(out), utf8.Valid(out)
}

// Whole reports whether a JSON string, which is valid, has no half of a
// surrogate pair: such a half has no place in a Go string, and [Text] makes it
// U+FFFD.
func Whole(quoted []byte) bool {
	for i := 0; i+1 < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		first := surrogate(quoted[i:])
		if first == 0 {
			i++
			continue
		}
		if first != highHalf || surrogate(quoted[i+6:]) != lowHalf {
			return false
		}
		i += 11
	}
	return true
}

const (
	highHalf = 1 + iota
	lowHalf
)

// surrogate says which half of a pair the escape is that text begins with, 0 if
// it begins with none.
func surrogate(text []byte) int {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' || text[2]|0x20 != 'd' {
		return 0
	}
	switch c := text[3] | 0x20; {
	case text[3] == '8' || text[3] == '9' || c == 'a' || c == 'b':
		return highHalf
	case c >= 'c' && c <= 'f':
		return lowHalf
	}
	return 0
}

// nextEscape finds the next backslash: near ones by a loop, as in dense text a
// call costs more than the few bytes.
func nextEscape(in []byte) int {
	near := min(len(in), 16)
	for i := range near {
		if in[i] == '\\' {
			return i
		}
	}
	if n := bytes.IndexByte(in[near:], '\\'); n >= 0 {
		return near + n
	}
	return -1
}

// unescaped has what stands for a byte after a backslash; 0 = no single byte.
var unescaped = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// AppendQuoted appends text as a JSON string. Only what must be escaped is:
// <, > and & stay, as each escape costs a model several tokens. Invalid UTF-8
// becomes U+FFFD; U+2028 and U+2029 are escaped, since some readers take JSON
// for JavaScript.
func AppendQuoted(out []byte, text string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				out = append(append(out, text[start:i]...), "\ufffd"...)
				start = i + size
			case r == '\u2028' || r == '\u2029':
				out = append(append(out, text[start:i]...), `\u202`...)
				out = append(out, hex[r&0xf])
				start = i + size
			}
			i += size
			continue
		}
		out = append(out, text[start:i]...)
		switch c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case '\t':
			out = append(out, '\\', 't')
		default:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		i++
		start = i
	}
	return append(append(out, text[start:]...), '"')
}
