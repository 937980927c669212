package schemats

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mcpx/internal/plain"
)

// firstSentence is the first sentence of a raw description, cleaned. A line
// break that is followed by an empty line, a list or a heading ends it too.
func firstSentence(s string, max int) string {
	s = strings.TrimSpace(s)
	for i := 0; i < len(s); i++ {
		if s[i] == '\n' && plain.Line(s[:i], 0) != "" {
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
	return plain.Line(s, max)
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
		case plain.Invisible(c) || unicode.IsSpace(c) && c != ' ':
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

// propertyKey writes a property name. "__proto__" is quoted: copied into an
// object literal without quotes, it would set the prototype.
func propertyKey(s string) string {
	if identifier(s) && s != "__proto__" {
		return s
	}
	return quoted(s)
}

// blockText makes cleaned text safe between /* and */. "*\/" means the same in
// a JSON string and in a regular expression.
func blockText(s string) string { return strings.ReplaceAll(s, "*/", `*\/`) }
