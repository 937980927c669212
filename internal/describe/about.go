package describe

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/tokens"
)

const (
	// maxAbout is the maximum length of a server's purpose in the answer of inspect about the server, in tokens.
	maxAbout = 4000
	// aboutBytes is how many bytes of a line of the purpose are read at most. No real text of maxAbout tokens has more bytes.
	aboutBytes = 16 * maxAbout
	// maxIndent is the maximum number of spaces at the beginning of a line of the purpose.
	maxIndent = 8
)

// about returns the purpose of s (what the server is for) as a comment. It has one line if the purpose is short enough for the
// catalogue, and otherwise all lines of the purpose, up to maxAbout tokens. It is empty if the purpose says no more than the
// name of s.
func about(s *catalog.Server) string {
	whole := cmp.Or(s.Purpose(), s.Title)
	line, more := sanitize.Clean(strings.TrimLeft(whole, "# \r\n"), maxPurpose) // without the # of a heading
	switch {
	case more:
		return "/*\n" + strings.ReplaceAll(wholeLines(whole, maxAbout), "*/", `*\/`) + "\n*/\n"
	case repeats(line, s.Name, serverWords):
		return ""
	}
	return "// " + line + "\n"
}

// wholeLines cleans each line of text and writes several empty lines as one. It cuts the text to at most limit tokens. If a line is
// longer than aboutBytes, it always cuts the text within that line. After a cut, a note says how many characters are missing.
func wholeLines(text string, limit int) string {
	var b strings.Builder
	at, left, gap := 0, limit, ""
	for line := range strings.Lines(text) {
		shown, _ := sanitize.Clean(line[:min(len(line), aboutBytes)], 0)
		if shown == "" {
			at += len(line)
			if b.Len() > 0 {
				gap = "\n\n"
			}
			continue
		}
		shown = gap + indent(line) + shown
		gap = "\n"
		cost := tokens.Estimate(shown)
		if left -= cost; left < 0 || len(line) > aboutBytes {
			start := within(shown, left+cost)
			b.WriteString(start)
			rest := utf8.RuneCountInString(text[at:]) - utf8.RuneCountInString(start)
			fmt.Fprintf(&b, "\n[about %d characters left out]", max(rest, 1))
			break
		}
		b.WriteString(shown)
		at += len(line)
	}
	return b.String()
}

// indent returns as many spaces as the line has spaces and tabs at its beginning, at most
// maxIndent.
func indent(line string) string {
	n := len(line) - len(strings.TrimLeft(line, " \t"))
	return strings.Repeat(" ", min(n, maxIndent))
}

// within cuts text to at most limit tokens, before a space or line end. If the part that fits has neither, it returns "".
func within(text string, limit int) string {
	fits, over := 0, len(text)+1
	for over-fits > 1 {
		n := (fits + over) / 2
		if tokens.Estimate(text[:n]) <= limit {
			fits = n
		} else {
			over = n
		}
	}
	if fits == len(text) {
		return text
	}
	return text[:max(strings.LastIndexAny(text[:fits], " \n"), 0)]
}
