package files

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// faultOf returns why a part of a path is refused on every system; empty if it is not. On Windows, faultOnWindows refuses more.
func faultOf(part string) string {
	switch {
	case part == "":
		return "is an empty part"
	case part == "." || part == "..":
		return "is not resolved; give the path without it"
	case part[0] == '.':
		return "begins with a dot, and such files are closed"
	case !utf8.ValidString(part) || strings.ContainsFunc(part, invisible):
		return "has characters that cannot be seen"
	}
	return ""
}

// invisible reports whether a character is a control or formatting character. Some file systems ignore formatting
// characters, so a path could lead to a hidden file by a name with such a character before the dot.
func invisible(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) }

// faultOnWindows returns why Windows would take a part of a path for another name; empty if it would not.
func faultOnWindows(part string) string {
	switch short := strings.IndexByte(part, '~'); {
	case strings.ContainsRune(part, ':'):
		return "has a colon, which names a drive or a stream of a file"
	case strings.ContainsAny(part, `<>"|?*\`):
		return "has a character that is not allowed in names"
	case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " "):
		return "ends with a dot or a space, which Windows drops"
	case short >= 0 && short+1 < len(part) && part[short+1] >= '0' && part[short+1] <= '9':
		return "may be the short name of another file"
	}
	return ""
}
