package terminal

import (
	"fmt"
	"strings"

	"mcpx/internal/base/sanitize"
)

// Text prepares text of an MCP server for the screen. On a terminal, it removes escape sequences and invisible
// characters: they could write to the clipboard, change earlier lines or hide a part of the text. For a pipe or file
// the text stays unchanged.
func (s Screen) Text(text string) string {
	if s.size == nil {
		return text
	}
	return strings.ToValidUTF8(sanitize.Lines(text), "\ufffd")
}

// JSON prepares JSON of an MCP server for the screen. On a terminal, it replaces control and invisible characters by \u escapes, so that
// the value stays the same. For a pipe or file the JSON stays unchanged.
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
