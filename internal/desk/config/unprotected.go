package config

import (
	"slices"
	"strings"
)

// Keys that promise safety. A user who sets one relies on it, so it is never ignored: if its
// part of mcpx does not exist, the server is unavailable.

// unprotected refuses a server with a key of this kind, unless it is turned off.
// text says what is missing, and what to do.
func (r *serverReader) unprotected(text string) value {
	return value{schema: `{}`, read: func(path string, n *node) {
		if !n.off() {
			r.fail(path, n.offset, "%s", text)
		}
	}}
}

const noSandbox = "no sandbox is built yet, so that this server would run without one; remove it if that is meant"

// sandbox refuses a server that is to run in a sandbox. An object has in VS Code the
// rules of what sandboxEnabled turns on, and turns nothing on alone.
func (r *serverReader) sandbox(path string, n *node) {
	rules := n.kind == objectKind && !slices.ContainsFunc(n.members, func(m member) bool { return m.key == "enabled" })
	if rules {
		r.l.otherClients.add("sandbox", r.path)
		return
	}
	r.unprotected(noSandbox).read(path, n)
}

// off reports whether a value turns off what its key stands for: null, false, 0,
// nothing, a word for it, or an object that says so, or has only such members.
func (n *node) off() bool {
	switch n.kind {
	case boolKind:
		return n.text == "false"
	case numberKind:
		return strings.Trim(n.text, "-0.") == ""
	case stringKind:
		return slices.Contains([]string{"", "off", "none", "false"}, strings.ToLower(strings.TrimSpace(n.text)))
	case arrayKind:
		return len(n.items) == 0
	case objectKind:
		for _, m := range n.members {
			if m.key == "enabled" {
				return m.value.off()
			}
		}
		return !slices.ContainsFunc(n.members, func(m member) bool { return !isComment(m.key) && !m.value.off() })
	}
	return true
}
