// Package sanitize makes untrusted text harmless: one line without hidden parts and without secrets. It also finds
// known names that are similar to an unknown one, and the reason for a program's end in its stderr.
package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const escape = 0x1b

// Line makes untrusted text one line that cannot hide anything from a reader. It collapses white space to single
// spaces, and removes control characters, ANSI escape sequences, bidi controls, zero-width and tag characters. Text
// longer than max runes is cut, if possible after a word; with the "..." at its end it has at most max runes. If max
// is 0, the text is not cut. Invalid UTF-8 becomes U+FFFD.
func Line(s string, max int) string {
	if isLine(s) && (max == 0 || len(s) <= max) {
		return s
	}
	text, more := Clean(s, max)
	return Cut(text, max, more)
}

// isLine is a fast check for text that Line would not change: ASCII with single spaces inside.
func isLine(s string) bool {
	space := true
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || space && s[i] == ' ' {
			return false
		}
		space = s[i] == ' '
	}
	return !space || s == ""
}

// Clean makes untrusted text one line without hidden characters, like [Line], but does not append "..." to cut text. It stops
// after max runes; 0 means no limit. cut reports whether visible text was cut off.
func Clean(s string, max int) (text string, cut bool) {
	var b strings.Builder
	n, space := 0, false
	for len(s) > 0 {
		r, size := rune(s[0]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s)
		}
		switch {
		case unicode.IsSpace(r):
			space = n > 0
			s = s[size:]
			continue
		case r == escape, r >= 0x80 && r <= 0x9f:
			s = s[sequence(s, r, size):]
			continue
		case Invisible(r):
			s = s[size:]
			continue
		}
		if space {
			if max > 0 && n+1 >= max {
				return b.String(), true
			}
			b.WriteByte(' ')
			n++
			space = false
		}
		if max > 0 && n >= max {
			return b.String(), true
		}
		b.WriteRune(r)
		n++
		s = s[size:]
	}
	return b.String(), false
}

// lineEnds replaces all kinds of line ends by \n.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// Lines removes the same hidden characters as [Line] from text of several lines, but keeps white space, for tables and code.
// Every kind of line end becomes \n.
func Lines(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && Invisible(r) }) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case unicode.IsSpace(r):
			b.WriteRune(r)
		case r == escape, r >= 0x80 && r <= 0x9f:
			size = sequence(s, r, size)
		case !Invisible(r):
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return lineEnds.Replace(b.String())
}

// Cut shortens text to max runes, including the "..." that it appends. It cuts after a word if a word ends in the second half.
// If max is 0, it does not cut; if max is 3 or less, it appends nothing. isCut means that text itself is only the beginning of
// a longer text, so that "..." is always needed.
func Cut(text string, max int, isCut bool) string {
	if max <= 0 || !isCut && runesWithin(text, max) {
		return text
	}
	const mark = "..."
	keep := max - len(mark)
	if keep <= 0 {
		return prefix(text, max)
	}
	head := prefix(text, keep)
	if len(head) < len(text) && text[len(head)] != ' ' {
		if i := strings.LastIndexByte(head, ' '); i >= len(head)/2 {
			head = head[:i]
		}
	}
	return strings.TrimRight(head, " .,;:-") + mark
}

// prefix returns the first n runes of s.
func prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func runesWithin(s string, max int) bool {
	return len(s) <= max || utf8.RuneCountInString(s) <= max
}

// Invisible reports whether r alone is not visible: control characters, line and paragraph separators, formatting characters
// (bidi, zero-width, tags), variation selectors and blank fillers. Most have been used to hide instructions in tool descriptions.
func Invisible(r rune) bool {
	switch {
	case r < 0x20, r == 0x7f:
		return true
	case r < 0xa0:
		return r >= 0x80
	case r == 0xad:
		return true
	case r < 0x300:
		return false
	case r == '\u2028', r == '\u2029':
		return true
	}
	return unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
		unicode.Is(unicode.Variation_Selector, r)
}

// sequence returns the length of the escape sequence (ECMA-48) at the start of s. The sequence begins with r, which is ESC or a
// C1 control, and is size bytes long in s. If the sequence is incomplete, only its introducer and, for CSI, its parameters are
// counted, so that it cannot hide the text after it.
func sequence(s string, r rune, size int) int {
	kind := byte(0)
	i := size
	if r == escape {
		if i == len(s) {
			return i
		}
		kind = s[i]
		i++
	} else {
		kind = byte(r) - 0x40
	}
	switch kind {
	case '[':
		i = span(s, i, 0x30, 0x3f)
		i = span(s, i, 0x20, 0x2f)
		if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
			i++
		}
		return i
	case ']', 'P', 'X', '^', '_':
		return controlString(s, i)
	}
	if r != escape {
		return size
	}
	i = span(s, i-1, 0x20, 0x2f)
	if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
		return i + 1
	}
	return size
}

// span returns the first index from i on at which the byte is below low or above high.
func span(s string, i int, low, high byte) int {
	for i < len(s) && s[i] >= low && s[i] <= high {
		i++
	}
	return i
}

// controlString returns the end of a control string (OSC, DCS, …) whose text starts at i. The string ends with BEL or ST. If
// another control character or the end of s comes first, the string is invalid, and the result is i.
func controlString(s string, i int) int {
	for j := i; j < len(s); j++ {
		switch {
		case s[j] == 0x07:
			return j + 1
		case s[j] == escape && j+1 < len(s) && s[j+1] == '\\':
			return j + 2
		case s[j] == 0xc2 && j+1 < len(s) && s[j+1] == 0x9c:
			return j + 2
		case s[j] < 0x20, s[j] == 0xc2 && j+1 < len(s) && s[j+1] < 0xa0:
			return i
		}
	}
	return i
}
