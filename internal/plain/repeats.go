package plain

import (
	"slices"
	"strings"
	"unicode"
)

// Repeats reports whether text has no word beyond those of a name and those in nothing, which
// say nothing: "The ID of the base" repeats baseId. A plural repeats its singular. nothing is
// in lower case.
func Repeats(text, name string, nothing []string) bool {
	known := append(words(name), words(apart(name))...)
	for i := range known {
		known[i] = strings.TrimSuffix(known[i], "s")
	}
	for _, word := range words(text) {
		if !slices.Contains(nothing, word) && !slices.Contains(known, strings.TrimSuffix(word, "s")) {
			return false
		}
	}
	return true
}

func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// apart is a name in camel case with spaces between its words.
func apart(name string) string {
	var b strings.Builder
	var last rune
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		last = r
	}
	return b.String()
}
