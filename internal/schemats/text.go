package schemats

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mcpx/internal/base/sanitize"
)

// firstSentence returns the first sentence of the description s, cleaned and cut to max runes.
// An empty line, a list or a heading also ends the sentence.
func firstSentence(s string, max int) string {
	s = strings.TrimSpace(s)
	for i := 0; i < len(s); i++ {
		if s[i] == '\n' && sanitize.Line(s[:i], 0) != "" {
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
	return sanitize.Line(s, max)
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

// A sentence of at least minRepeat bytes is left out when it occurs again. Shorter ones are always kept.
const minRepeat = 40

// prose returns a description, cleaned and without repeated sentences. It joins the lines to one,
// unless the description has a list, a heading, a table or code.
func prose(s string) string {
	s = s[:min(len(s), 8*maxDescription)]
	list := false
	var lines []string
	for line := range strings.Lines(sanitize.Lines(s)) {
		text := sanitize.Line(line, 0)
		if text == "" {
			continue
		}
		if i := strings.IndexFunc(line, func(r rune) bool { return r != ' ' && r != '\t' }); len(lines) > 0 {
			text = line[:i] + text
		}
		list = list || listItem(text)
		lines = append(lines, text)
	}
	if !list {
		return once(sanitize.Line(s, 0))
	}
	least := ""
	for i, line := range lines[1:] {
		space := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if i == 0 || len(space) < len(least) {
			least = space
		}
	}
	for i, line := range lines {
		lines[i] = once(strings.TrimPrefix(line, least))
	}
	return strings.Join(lines, "\n")
}

// listItem reports whether a line is a list item, a heading, or the beginning of a table row or a
// code block. Such lines must not be joined with other lines.
func listItem(line string) bool {
	line = strings.TrimLeft(line, " \t")
	mark := strings.TrimLeft(line, "0123456789")
	if len(mark) < len(line) {
		return strings.HasPrefix(mark, ". ") || strings.HasPrefix(mark, ") ")
	}
	for _, m := range [...]string{"- ", "* ", "+ ", "• ", "|", "```", "# ", "## ", "### "} {
		if strings.HasPrefix(line, m) {
			return true
		}
	}
	return false
}

// once returns the line s, with each of its sentences only once.
func once(s string) string {
	if len(s) < 2*minRepeat {
		return s
	}
	seen := map[string]bool{}
	return without(s, func(sentence string) bool {
		again := seen[sentence]
		seen[sentence] = true
		return again
	})
}

// without removes from s the sentences for which the function drop returns true. Sentences of fewer than minRepeat bytes are always
// kept.
func without(s string, drop func(sentence string) bool) string {
	var b strings.Builder
	for from := 0; from < len(s); {
		end := len(s)
		for i := from + 1; i < len(s); i++ {
			if s[i] == '\n' || (s[i] == '.' || s[i] == '!' || s[i] == '?') && sentenceEnd(s, i) {
				end = i + 1
				break
			}
		}
		if text := strings.TrimSpace(s[from:end]); len(text) < minRepeat || !drop(text) {
			b.WriteString(s[from:end])
		}
		from = end
	}
	return strings.TrimSpace(b.String())
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends s to b as a string literal that is valid JSON and TypeScript. It escapes
// invisible characters.
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
		case sanitize.Invisible(c) || unicode.IsSpace(c) && c != ' ':
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

// identifier reports whether s is written without quotes as a property name. TypeScript allows
// letters outside ASCII, too, but they get quotes, since some look like other letters.
func identifier(s string) bool {
	for i := range len(s) {
		if s[i] != '$' && !asciiWord(s[i]) {
			return false
		}
	}
	return s != "" && (s[0] < '0' || s[0] > '9')
}

// propertyKey returns a property name as it is written in a type, with quotes if needed.
func propertyKey(s string) string {
	if identifier(s) {
		return s
	}
	return quoted(s)
}

// blockText returns cleaned text that can be written between /* and */: each "*/" becomes "*\/",
// which has the same meaning in JSON strings and regular expressions.
func blockText(s string) string { return strings.ReplaceAll(s, "*/", `*\/`) }
