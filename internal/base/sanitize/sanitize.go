// Package sanitize makes untrusted text harmless: one line without hidden parts, and without secrets. It also finds
// the name that was meant by a wrong one, and the cause of a program's end in its stderr.
package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const escape = 0x1b

// Line makes untrusted text one line that cannot hide anything from a reader: white space is collapsed to single
// spaces; control characters, ANSI escape sequences, bidi controls, zero-width and tag characters are removed. Text
// longer than max runes is cut at a word and ends in "...", within max; 0 = no cut. Invalid UTF-8 becomes U+FFFD.
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

// Clean is [Line] without the mark of a cut: it stops after max runes (0 = never) and reports whether visible text is
// left.
func Clean(s string, max int) (text string, more bool) {
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

// lineEnds normalizes line ends.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// Lines is [Line] for text of several lines. White space is kept, for tables and code.
func Lines(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && (Invisible(r) || r == '\u2028' || r == '\u2029') }) {
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

// Cut shortens text to max runes, at a word if there is one in the second half, and appends "..."; 0 = no cut. more
// means that text is already cut.
func Cut(text string, max int, more bool) string {
	if max <= 0 || !more && runesWithin(text, max) {
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

// Invisible reports whether r is not visible by itself: controls, formats (bidi, zero-width, tags), variation
// selectors and blank fillers. All have been used to hide instructions in tool descriptions.
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
	}
	return unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
		unicode.Is(unicode.Variation_Selector, r)
}

// sequence returns the length of the escape sequence (ECMA-48) at the start of s. Its first rune r is ESC or a C1
// control, size bytes long. Of an incomplete sequence only the introducer is included, so that it cannot hide the
// text after it.
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

// span returns the first index from i on with a byte outside low to high.
func span(s string, i int, low, high byte) int {
	for i < len(s) && s[i] >= low && s[i] <= high {
		i++
	}
	return i
}

// controlString returns the end of a control string (OSC, DCS, …) whose text starts at i. It ends with BEL or ST; any
// other control makes it invalid, which also keeps the search linear.
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
