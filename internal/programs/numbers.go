package programs

import (
	"bytes"
	"crypto/rand"
	"strings"

	"mcpx/internal/base/wire"
)

// JavaScript's numbers are exact for integers up to 2^53. Larger ones are BigInts in programs. JSON.parse and JSON.stringify
// know no BigInts, so between Go and the engine such an integer is a string: a mark and its digits. Each engine has its own
// random mark.

// newMark returns a mark that no program can guess.
func newMark() string { return "mcpx-" + rand.Text() + ":" }

// exactDigits is the number of digits up to which every integer is exact: 2^53 has 16 digits.
const exactDigits = 15

// quoteBig replaces the integers beyond 2^53 in valid JSON by strings with the mark. found is false, and the text unchanged, if
// there are no such integers.
func quoteBig(text, mark string) (quoted string, found bool) {
	var out strings.Builder
	from := 0
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i = stringEnd(text, i)
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(text) && strings.IndexByte("0123456789.eE+-", text[end]) >= 0 {
				end++
			}
			if number := text[i:end]; beyond(number) {
				out.WriteString(text[from:i] + `"` + mark + number + `"`)
				from, found = end, true
			}
			i = end
		default:
			i++
		}
	}
	if !found {
		return text, false
	}
	out.WriteString(text[from:])
	return out.String(), true
}

// stringEnd returns the index after the JSON string that begins at i.
func stringEnd(text string, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// beyond reports whether a JSON number is an integer, without fraction and exponent, beyond 2^53.
func beyond(number string) bool {
	const limit = "9007199254740992"
	digits := strings.TrimPrefix(number, "-")
	if len(digits) <= exactDigits || strings.ContainsAny(digits, ".eE") {
		return false
	}
	return len(digits) > len(limit) || digits > limit
}

// unquoteBig replaces the strings with the mark by the integers that they contain.
func unquoteBig(text, mark string) []byte {
	from := []byte(text)
	if !strings.Contains(text, mark) {
		return from
	}
	var out bytes.Buffer
	for len(from) > 0 {
		before, after, found := bytes.Cut(from, []byte(`"`+mark))
		out.Write(before)
		if !found {
			break
		}
		digits, rest, closed := bytes.Cut(after, []byte(`"`))
		if !closed || !wire.Valid(digits) { // not from quoteBig: a program has guessed the mark
			out.WriteString(`"` + mark)
			from = after
			continue
		}
		out.Write(digits)
		from = rest
	}
	return out.Bytes()
}
