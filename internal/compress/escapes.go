package compress

import (
	"strings"
	"unicode"

	"mcpx/internal/base/wire"
)

// unescapeJSON writes the escapes of compact JSON in their shortest form: \u4e2d as its character, \/ as
// /, \u000a as \n. Python's json.dumps escapes all characters but ASCII, Go's json.Marshal escapes <, >
// and &, and each escape costs two to six tokens. The value stays the same. Control and format characters
// (zero-width, bidi), lone surrogates, quotes and backslashes stay escaped.
func unescapeJSON(compact string) string {
	i := strings.IndexByte(compact, '\\')
	if i < 0 {
		return compact
	}
	var out strings.Builder
	from := 0 // start of the part that is not in out yet
	for i < len(compact) {
		text, n := shortEscape(compact[i:])
		if text != "" {
			if out.Cap() == 0 {
				out.Grow(len(compact))
			}
			out.WriteString(compact[from:i])
			out.WriteString(text)
			from = i + n
		}
		i += n
		next := strings.IndexByte(compact[i:], '\\')
		if next < 0 {
			break
		}
		i += next
	}
	if from == 0 {
		return compact
	}
	out.WriteString(compact[from:])
	return out.String()
}

// shortEscape is the shorter text for the escape at the start of s, empty if there is none, and the
// length of the escape.
func shortEscape(s string) (text string, n int) {
	switch s[1] {
	case '/':
		return "/", 2
	case 'u':
	default:
		return "", 2
	}
	r, n, whole := wire.EscapedRune(s)
	if !whole {
		return "", n
	}
	switch r {
	case '"':
		return `\"`, n
	case '\\':
		return `\\`, n
	case '\n':
		return `\n`, n
	case '\r':
		return `\r`, n
	case '\t':
		return `\t`, n
	case '\b':
		return `\b`, n
	case '\f':
		return `\f`, n
	}
	if unicode.IsPrint(r) {
		return string(r), n
	}
	return "", n
}
