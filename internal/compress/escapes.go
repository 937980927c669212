package compress

import (
	"strings"
	"unicode"

	"mcpx/internal/base/wire"
)

// unescapeJSON writes the escapes of compact JSON in their shortest form: \u4e2d as its
// character, \/ as /, \u000a as \n. Python escapes all characters beyond ASCII, and Go escapes
// <, > and &, which costs two to six tokens each. Control and format characters (zero-width,
// bidi), lone surrogates, quotes and backslashes stay escaped.
func unescapeJSON(compact string) string {
	var out strings.Builder
	from := 0 // start of the part that is not in out yet
	for i := 0; ; {
		next := strings.IndexByte(compact[i:], '\\')
		if next < 0 {
			break
		}
		i += next
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
	}
	if from == 0 {
		return compact
	}
	out.WriteString(compact[from:])
	return out.String()
}

// shortEscape returns a shorter text for the escape at the beginning of s, or "" if there is none. n is the length of the
// escape.
func shortEscape(s string) (text string, n int) {
	switch s[1] {
	case '/':
		return "/", 2
	case 'u':
	default:
		return "", 2
	}
	r, n, whole := wire.EscapedRune(s)
	const meanings, letters = "\"\\\n\r\t\b\f", `"\nrtbf`
	switch i := strings.IndexRune(meanings, r); {
	case !whole:
		return "", n
	case i >= 0:
		return `\` + letters[i:i+1], n
	case unicode.IsPrint(r):
		return string(r), n
	}
	return "", n
}
