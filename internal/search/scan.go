package search

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// script is a writing system, or a group of them, with its own rules for words.
type script uint8

const (
	latin    script = iota // also Greek and every other alphabet without rules of its own
	cyrillic               // words are stemmed as Russian
	arabic                 // words lose their article
	dense                  // Chinese, Japanese, Korean, Thai…: no spaces between words, so a word is a whole run of characters
	number                 // words of digits only
)

// word is one word of a text, in lower case and with accents folded.
type word struct {
	text   string
	script script
	// parts are the parts of an identifier, or of a name such as GitHub; nil if the word has only one part.
	parts []string
}

// maxWord bounds a word of a script with spaces, in bytes. Longer words are mostly encoded data.
const maxWord = 48

// scan calls emit for every word of s. Identifiers in snake_case and kebab-case
// are several words; camelCase is one word with parts.
func scan(s string, emit func(w word)) {
	for i := 0; i < len(s); {
		if end := asciiWord(s, i); end > i {
			emit(word{text: cut(s[i:end], maxWord)})
			i = end
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isWordRune(r) {
			i += n
			continue
		}
		start := i
		c := scriptOf(r)
		for i += n; i < len(s); i += n {
			r, n = utf8.DecodeRuneInString(s[i:])
			if !isWordRune(r) {
				break
			}
			if next := scriptOf(r); next != c && next != number && !unicode.Is(unicode.Mn, r) {
				if c != number || next == dense {
					break
				}
				c = next
			} else if c == dense && next == number {
				break
			}
		}
		emitRun(s[start:i], c, emit)
	}
}

// asciiWord returns the end of the word that begins at s[i], if it has only small ASCII letters, as most words do. Otherwise it
// returns i.
func asciiWord(s string, i int) int {
	end := i
	for end < len(s) && 'a' <= s[end] && s[end] <= 'z' {
		end++
	}
	if end < len(s) && (s[end] >= utf8.RuneSelf || isWordRune(rune(s[end]))) {
		return i
	}
	return end
}

// emitRun calls emit for a run: letters and digits of one script, without spaces between them.
func emitRun(run string, c script, emit func(w word)) {
	w := word{text: fold(run), script: c}
	if c != dense {
		w.text = cut(w.text, maxWord)
	}
	if w.text == "" {
		return
	}
	if c != dense && c != number && len(run) <= maxWord && mayHaveParts(run) {
		for _, p := range splitCase(run) {
			if f := fold(p); f != "" {
				w.parts = append(w.parts, f)
			}
		}
		if len(w.parts) < 2 {
			w.parts = nil
		}
	}
	emit(w)
}

// mayHaveParts reports whether splitCase must be called for a word. It is false for words in small ASCII letters, which most
// words are.
func mayHaveParts(run string) bool {
	for i := 0; i < len(run); i++ {
		c := run[i]
		if c >= utf8.RuneSelf || '0' <= c && c <= '9' || i > 0 && 'A' <= c && c <= 'Z' {
			return true
		}
	}
	return false
}

// cut shortens s to at most limit bytes, in whole characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r))
}

func scriptOf(r rune) script {
	switch {
	case r < utf8.RuneSelf:
		if '0' <= r && r <= '9' {
			return number
		}
		return latin
	case r < 0x0370:
		return latin
	case 0x0400 <= r && r <= 0x052F:
		return cyrillic
	case 0x0600 <= r && r <= 0x06FF, 0x0750 <= r && r <= 0x077F:
		if unicode.IsDigit(r) {
			return number
		}
		return arabic
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar), r == 'ー', r == '々':
		return dense
	case unicode.IsDigit(r):
		return number
	}
	return latin
}

// splitCase splits run where its case changes (camelCase, HTTPServer) and between
// digits and three letters or more (python3). A plural acronym (PRs, URLs) stays
// whole, and so does mp3.
func splitCase(run string) []string {
	rs := []rune(run)
	var parts []string
	start := 0
	add := func(end int) {
		if end > start {
			parts = append(parts, string(rs[start:end]))
			start = end
		}
	}
	for i := 1; i < len(rs); i++ {
		p, r := rs[i-1], rs[i]
		switch {
		case unicode.IsUpper(r) && (unicode.IsLower(p) || unicode.IsDigit(p)):
			add(i)
		case unicode.IsUpper(r) && unicode.IsUpper(p) && i+1 < len(rs) && unicode.IsLower(rs[i+1]):
			if !isPluralAcronym(rs, i+1) {
				add(i)
			}
		case unicode.IsDigit(r) && unicode.IsLetter(p) && i-start >= 3:
			add(i)
		case unicode.IsLower(r) && unicode.IsDigit(p) && i-start >= 3:
			add(i)
		}
	}
	add(len(rs))
	return parts
}

// isPluralAcronym reports whether rs[i] is the plural s of an acronym, as in URLs or PRsOpen.
func isPluralAcronym(rs []rune, i int) bool {
	return rs[i] == 's' && (i+1 == len(rs) || !unicode.IsLower(rs[i+1]))
}

// fold is s in lower case without accents. Full-width forms become plain ones.
func fold(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf || 'A' <= r && r <= 'Z' }) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		foldRune(&b, r)
	}
	return b.String()
}
