package terminal

import (
	"fmt"
	"strings"

	"mcpx/internal/base/sanitize"
)

// Text prepares a text of a server for the screen. On a terminal, escape sequences and invisible characters are removed:
// they could write to the clipboard, forge earlier lines or hide a part. A pipe or file gets the text unchanged.
func (s Screen) Text(text string) string {
	if s.size == nil {
		return text
	}
	return strings.ToValidUTF8(sanitize.Lines(text), "\ufffd")
}

// JSON is [Screen.Text] for JSON. Control and invisible characters become \u escapes, so that the value stays the same.
func (s Screen) JSON(raw string) string {
	if s.size == nil {
		return raw
	}
	var b strings.Builder
	for _, r := range raw { // an invalid byte becomes U+FFFD
		switch {
		case r == '\n' || r == '\t' || r == '\r' || !sanitize.Invisible(r):
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
