package results

import (
	"fmt"
	"strings"

	"mcpx/internal/base/wire"
)

// restTokens and restBytes are the most that the line about how to read the rest needs, not counting the part about a grep.
const (
	restTokens = 100
	restBytes  = 320
)

// rest is what the line about how to read the rest says: how many parts are not shown, and the call that reads them.
type rest struct {
	left, total int
	what        string // the kind of the parts, such as "items"
	next        ReadArguments
	// first means that this line is at the end of the first part. It also explains how to search.
	first bool
	// shortened is how many items are shown without parts of them.
	shortened int
}

// also is what the line at the end of the first part says about the handle. shortened is what it says about shortened items.
const (
	also      = `, grep (regex), select (jq). {"$result":handle} passes the whole on as an argument`
	shortened = ", %d shortened (whole at offset 0)"
)

// restLine returns the line about how to read the rest. If there is no handle, the line says that the rest is lost.
func (p Pages) restLine(r rest) string {
	more := ""
	switch {
	case r.next.Handle == "":
		return fmt.Sprintf("[%d of %d %s, and dropped: the result is too long to be kept; ask for less, or use select]", r.left, r.total, r.what)
	case r.shortened > 0 && r.left == 0:
		r.left = r.shortened
		more = "; it also takes offset, limit" + also
	case r.first:
		more = "; it also takes limit" + also
	}
	if r.shortened > 0 && r.shortened < r.total {
		r.what += fmt.Sprintf(shortened, r.shortened)
	}
	return fmt.Sprintf("[%d of %d %s: %s%s]", r.left, r.total, r.what, p.Call(r.next), more)
}

// Call returns a call of read_result, written so that a model can copy it.
func (p Pages) Call(args ReadArguments) string { return p.CallOf(Tool, args) }

// CallOf returns a call of another tool of the built-in server that takes a handle, written so that a model can copy
// it.
func (p Pages) CallOf(tool string, args ReadArguments) string {
	if p.ShortNames {
		return "exec " + string(wire.Encode(struct {
			Server    string        `json:"server"`
			Tool      string        `json:"tool"`
			Arguments ReadArguments `json:"args"`
		}{Server, tool, args}))
	}
	return "exec " + string(wire.Encode(struct {
		Server    string        `json:"server_name"`
		Tool      string        `json:"tool_name"`
		Arguments ReadArguments `json:"arguments"`
	}{Server, tool, args}))
}

// withMatched adds a line to a text that shows all matches of a grep. The line says how many matches there are. If
// kept is not empty, h was kept under this handle, and the line also says how to read what is around the matches.
func (p Pages) withMatched(text string, h *result, wanted span, kept string) string {
	if wanted.list == nil {
		return text
	}
	line := h.matched(wanted, wanted.len())
	if kept != "" {
		next, around := ReadArguments{Handle: kept}, "; all: "
		if wanted.len() > 0 {
			around, next.Offset = "; around them: ", wanted.at(0)
		}
		line += around + p.Call(next)
	}
	return withLine(text, "["+line+"]")
}

// withLines adds about, which describes the complete result and may be empty, and rest, the line about how to read the rest.
// rest is put first for clients that keep only the beginning of a result.
func (p Pages) withLines(text, about, rest string) string {
	switch {
	case about == "" && p.LineFirst:
		return rest + "\n" + text
	case p.LineFirst:
		return rest + "\n" + about + "\n" + text
	case about != "":
		text = withLine(text, about)
	}
	return withLine(text, rest)
}

// withLine adds a line to a text.
func withLine(text, line string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line
}
