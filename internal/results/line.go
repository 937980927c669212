package results

import (
	"fmt"
	"strings"

	"mcpx/internal/base/wire"
)

// restTokens and restBytes are the maximum length of the line about how to read the rest, in tokens and in bytes, not counting
// the part about a grep.
const (
	restTokens = 100
	restBytes  = 320
)

// rest is the content of the line about how to read the rest: how many parts are not shown, and the call that reads them.
type rest struct {
	left, total int
	noun        string // the kind of the parts, such as "items"
	next        ReadArguments
	// first means that this line is at the end of the first part. The line then also explains how to search.
	first bool
	// shortened is how many of the shown items are shortened.
	shortened int
}

// handleHint and shortenedHint are parts of the line about how to read the rest, if this line is at the end of the first part.
// handleHint says what the handle can be used for. shortenedHint says how many items are shortened.
const (
	handleHint    = `, grep (regex), select (jq). {"$result":handle} passes the whole on as an argument`
	shortenedHint = ", %d shortened (whole at offset 0)"
)

// restLine returns the line about how to read the rest. If there is no handle, the line says that the rest is lost.
func (p Pages) restLine(r rest) string {
	more := ""
	switch {
	case r.next.Handle == "":
		return fmt.Sprintf("[%d of %d %s, and dropped: the result is too long to be kept; ask for less, or use select]", r.left, r.total, r.noun)
	case r.shortened > 0 && r.left == 0:
		r.left = r.shortened
		more = "; it also takes offset, limit" + handleHint
	case r.first:
		more = "; it also takes limit" + handleHint
	}
	if r.shortened > 0 && r.shortened < r.total {
		r.noun += fmt.Sprintf(shortenedHint, r.shortened)
	}
	return fmt.Sprintf("[%d of %d %s: %s%s]", r.left, r.total, r.noun, p.Call(r.next), more)
}

// Call returns a call of read_result, written so that a model can copy it.
func (p Pages) Call(args ReadArguments) string { return p.CallOf(Tool, args) }

// CallOf returns a call of a tool of the built-in server, written so that a model can copy it. The tool takes a handle, as
// read_result does.
func (p Pages) CallOf(tool string, args ReadArguments) string {
	names := [...]string{"server_name", "tool_name", "arguments"}
	if p.ShortNames {
		names = [...]string{"server", "tool", "args"}
	}
	return "exec " + string(wire.Encode(Object{{names[0], Server}, {names[1], tool}, {names[2], args}}))
}

// withMatched is for a text with the matches of a grep, if none of them is left out. It adds a line that says how many matches
// there are. handle is the handle of h, or empty if h was not kept. If there is a handle, the line also says how to read the parts
// around the matches. If wanted is not from a grep, withMatched returns text as it is.
func (p Pages) withMatched(text string, h *result, wanted span, handle string) string {
	if wanted.list == nil {
		return text
	}
	line := h.matched(wanted, wanted.len())
	if handle != "" {
		next, around := ReadArguments{Handle: handle}, "; all: "
		if wanted.len() > 0 {
			around, next.Offset = "; around them: ", wanted.at(0)
		}
		line += around + p.Call(next)
	}
	return withLine(text, "["+line+"]")
}

// withLines adds two parts to a text: about, which describes the complete result and may be empty, and line, which says how to
// read the rest. For clients that keep only the beginning of a result, line is put first.
func (p Pages) withLines(text, about, line string) string {
	switch {
	case about == "" && p.LineFirst:
		return line + "\n" + text
	case p.LineFirst:
		return line + "\n" + about + "\n" + text
	case about != "":
		text = withLine(text, about)
	}
	return withLine(text, line)
}

func withLine(text, line string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line
}
