package schemats

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes foreign text one line that is safe in a comment: white space of
// every kind collapsed to single spaces, terminal escapes and invisible
// characters (control, bidi, zero-width, tags) removed. The end of a block
// comment is broken where the comment is written, since globs such as **/*.go
// are left alone behind //.
func clean(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for i := 0; i < len(s); {
		c := rune(s[i])
		size := 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(s[i:])
		}
		if c == 0x1b {
			i += ansiLen(s[i:])
			continue
		}
		i += size
		switch {
		case c == ' ' || c > 0x20 && c < 0x7f:
		case unicode.IsSpace(c):
			c = ' '
		case invisible(c):
			continue
		}
		if c == ' ' {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(c)
	}
	return b.String()
}

// ansiLen is the length of the terminal sequence that starts with ESC.
func ansiLen(s string) int {
	if len(s) < 2 || s[1] != '[' {
		return 1
	}
	for i := 2; i < len(s); i++ {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
		if s[i] < 0x20 || s[i] > 0x7e {
			break
		}
	}
	return 2
}

// invisible reports characters that a reader cannot see and that can hide or
// reorder text: Cc, Cf (bidi, zero-width, tags, BOM), line and paragraph
// separators, variation selectors beyond the BMP, private planes' noncharacters.
func invisible(c rune) bool {
	switch {
	case c < 0x20 || c >= 0x7f && c < 0xa0:
		return true
	case c < 0xad:
		return false
	case c == 0x2028 || c == 0x2029 || c == 0x115f || c == 0x1160 || c == 0x3164 || c == 0xffa0:
		return true
	case c >= 0xe0000 && c <= 0xe0fff:
		return true
	}
	return unicode.Is(unicode.Cf, c)
}

// cut shortens s to max runes on a word, with "..." at the end; 0 = no cut.
func cut(s string, max int) string {
	if max <= 0 || len(s) <= max || utf8.RuneCountInString(s) <= max {
		return s
	}
	keep := max - 3
	if keep < 1 {
		keep = 1
	}
	end := 0
	for i := range s {
		if keep == 0 {
			end = i
			break
		}
		keep--
	}
	if s[end] != ' ' {
		if word := strings.LastIndexByte(s[:end], ' '); word > end/2 {
			end = word
		}
	}
	return strings.TrimRight(s[:end], " ,;:") + "..."
}

// firstSentence is the first sentence of a raw description, cleaned. A line
// break that is followed by an empty line, a list or a heading ends it too.
func firstSentence(s string, max int) string {
	s = strings.TrimSpace(s)
	for i := 0; i < len(s); i++ {
		if s[i] == '\n' && clean(s[:i]) != "" {
			rest := strings.TrimLeft(s[i+1:], " \t\r")
			if rest == "" || strings.ContainsRune("\n-*#<|`1", rune(rest[0])) {
				s = s[:i]
			}
			continue
		}
		if i > 1 && (s[i] == '.' || s[i] == '!' || s[i] == '?') && sentenceEnd(s, i) {
			s = s[:i+1]
			break
		}
	}
	return cut(clean(s), max)
}

func sentenceEnd(s string, i int) bool {
	if i+1 == len(s) {
		return true
	}
	if c := s[i+1]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
		return false
	}
	word := s[strings.LastIndexAny(s[:i], " \n\t(")+1 : i]
	switch strings.ToLower(word) {
	case "e.g", "i.e", "eg", "ie", "etc", "vs", "no", "approx":
		return false
	}
	return true
}

const hexDigits = "0123456789abcdef"

// appendQuoted writes a string literal that is valid JSON and valid TypeScript
// and means s: invisible characters are escaped, not removed.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\r':
			b = append(b, `\r`...)
		case invisible(c) || c == 0x00a0:
			b = appendEscape(b, c)
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return append(b, '"')
}

func appendEscape(b []byte, c rune) []byte {
	if c > 0xffff {
		c -= 0x10000
		b = appendEscape(b, 0xd800+c>>10)
		return appendEscape(b, 0xdc00+c&0x3ff)
	}
	return append(b, '\\', 'u', hexDigits[c>>12&15], hexDigits[c>>8&15], hexDigits[c>>4&15], hexDigits[c&15])
}

func quoted(s string) string { return string(appendQuoted(nil, s)) }

// identifier reports whether s can stand unquoted as a property name. Only
// ASCII: other letters are legal too, but look alike.
func identifier(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			return false
		}
	}
	return true
}

// propertyKey writes a property name. "__proto__" is quoted so that a reader who
// copies it into an object literal does not set the prototype unseen.
func propertyKey(s string) string {
	if identifier(s) && s != "__proto__" {
		return s
	}
	return quoted(s)
}

// blockText makes cleaned text safe between /* and */. "*\/" means the same in
// a JSON string and in a regular expression.
func blockText(s string) string { return strings.ReplaceAll(s, "*/", `*\/`) }
