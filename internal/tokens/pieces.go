package tokens

import (
	"unicode"
	"unicode/utf8"
)

// class is the class of a character in the rule by which o200k_base splits a text into pieces. It depends on the Unicode category
// of the character (Lu, Ll and so on). It is a set, since some letters are in both the upper and the lower class.
type class uint8

const (
	upper  class = 1 << iota // Lu, Lt, Lm, Lo, M
	lower                    // Ll, Lm, Lo, M
	number                   // N
	space                    // white space
	eol                      // \r and \n, which are also space
	mark                     // M, which is also upper and lower: a mark may also precede a word
	wide                     // a byte that is a part of a character beyond ASCII
	letter = upper | lower
)

// byteClass has the class of every ASCII byte; the class 0 means punctuation or a control character. Bytes beyond ASCII have the
// class wide.
var byteClass = func() (t [256]class) {
	for c := range t {
		switch {
		case c >= utf8.RuneSelf:
			t[c] = wide
		case 'a' <= c && c <= 'z':
			t[c] = lower
		case 'A' <= c && c <= 'Z':
			t[c] = upper
		case '0' <= c && c <= '9':
			t[c] = number
		case c == '\n' || c == '\r':
			t[c] = space | eol
		case c == ' ' || '\t' <= c && c <= '\f':
			t[c] = space
		}
	}
	return t
}()

// classAt returns the class and the length in bytes of the character at s[i].
func classAt(s string, i int) (class, int) {
	if c := byteClass[s[i]]; c != wide {
		return c, 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return runeClass(r), n
}

func runeClass(r rune) class {
	switch {
	case 0x4e00 <= r && r <= 0x9fff, 0xac00 <= r && r <= 0xd7a3, 0x3041 <= r && r <= 0x3096:
		return upper | lower
	case unicode.IsLower(r):
		return lower
	case unicode.IsUpper(r), unicode.IsTitle(r):
		return upper
	case unicode.IsLetter(r):
		return upper | lower
	case unicode.IsMark(r):
		return upper | lower | mark
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return 0
}

// nextPiece returns the end of the piece that starts at s[i], by the split rule of o200k_base:
//
//	[^\r\n\p{L}\p{N}]?U*L+('s|'t|'re|'ve|'m|'ll|'d)? | [^\r\n\p{L}\p{N}]?U+L*('s|…)? |
//	\p{N}{1,3} | ?[^\s\p{L}\p{N}]+[\r\n/]* | \s*[\r\n]+ | \s+(?!\S) | \s+
//
// where U is upper and L is lower. No token crosses the end of a piece.
func nextPiece(s string, i int) int {
	c, n := classAt(s, i)
	switch {
	case c&letter != 0 && c&mark == 0:
		return word(s, i)
	case c == number:
		return digits(s, i+n)
	}
	if c&eol == 0 && i+n < len(s) {
		if d, _ := classAt(s, i+n); d&letter != 0 {
			return word(s, i+n)
		}
	}
	if c&letter != 0 {
		return word(s, i)
	}
	if c&space == 0 {
		return punct(s, i+n)
	}
	if s[i] == ' ' && i+1 < len(s) {
		if d, m := classAt(s, i+1); d == 0 {
			return punct(s, i+1+m)
		}
	}
	return blank(s, i)
}

// word returns the end of the word that begins at i: upper-case letters, then lower-case letters, then an English contraction.
// Each of the three parts may be missing.
func word(s string, i int) int {
	end := i
	for end < len(s) && byteClass[s[end]] == upper {
		end++
	}
	for end < len(s) && byteClass[s[end]] == lower {
		end++
	}
	if end == len(s) || end > i && byteClass[s[end]] != wide && s[end] != '\'' {
		return end // the usual case: an ASCII word
	}
	return anyWord(s, i)
}

// anyWord returns the end of a word at i as word does, but handles letters of every script.
func anyWord(s string, i int) int {
	end := i   // the end of the part that U* in the split rule matches (see nextPiece)
	both := -1 // the end of the last letter of this part that is also in L; -1 if there is none
	for end < len(s) {
		c, n := classAt(s, end)
		if c&upper == 0 {
			break
		}
		end += n
		if c&lower != 0 {
			both = end
		}
	}
	tail := end
	for tail < len(s) {
		c, n := classAt(s, tail)
		if c&lower == 0 {
			break
		}
		tail += n
	}
	if tail == end && both >= 0 {
		tail = both
	}
	return tail + contraction(s[tail:])
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd at the start of s, in any case; 0 if there is none.
func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(s) > 2 && s[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(s) > 2 && s[2]|0x20 == 'l' {
			return 3
		}
	}
	return 0
}

// digits returns the end of a piece of digits. i is the end of its first digit. A piece has at most three digits.
func digits(s string, i int) int {
	for range 2 {
		if i == len(s) {
			break
		}
		c, n := classAt(s, i)
		if c != number {
			break
		}
		i += n
	}
	return i
}

// punct returns the end of a run of punctuation, and of the line ends and slashes after it.
func punct(s string, i int) int {
	for i < len(s) {
		c, n := byteClass[s[i]], 1
		if c == wide {
			c, n = classAt(s, i)
		}
		if c&(letter|number|space) != 0 && c&mark == 0 {
			break
		}
		i += n
	}
	for i < len(s) && (s[i] == '\n' || s[i] == '\r' || s[i] == '/') {
		i++
	}
	return i
}

// blank returns the end of a piece of white space that begins at i. If the white space has line ends, the piece ends after the
// last line end. Otherwise, if text follows the white space, the last space belongs to the next piece, unless it is the only
// space.
func blank(s string, i int) int {
	end, last, line := i, i, -1
	for end < len(s) {
		c, n := classAt(s, end)
		if c&space == 0 {
			break
		}
		last = end
		end += n
		if c&eol != 0 {
			line = end
		}
	}
	switch {
	case line >= 0:
		return line
	case end == len(s) || last == i:
		return end
	}
	return last
}
