package config

import (
	"slices"
	"strings"
)

// Users rely on keys that promise protection. This file reads those whose protection mcpx does not have, so that none is ignored.

// unprotected reads a key that asks for a protection which mcpx does not have: the server is unavailable, unless the value turns the key
// off. The parameter missing says what mcpx lacks.
func (r *serverReader) unprotected(missing string) value {
	return value{schema: `{}`, read: func(n *node) {
		if !n.off() {
			r.fail(n, missing, "this server")
		}
	}}
}

// unprotected reads a root key that asks for a protection which mcpx does not have. Unless the value turns the key off, the key is a
// fault of structure.
func (l *loader) unprotected(missing string) value {
	return value{schema: `{"$ref": "#/$defs/off"}`, read: func(n *node) {
		if !n.off() {
			l.fault(n, missing, "mcpx")
		}
	}}
}

// These texts say which protection mcpx does not have, or not at the root. Their %s stands for what would run without this protection.
const (
	noSandbox      = "mcpx has no sandbox, so %s would run without one; remove the key to accept that"
	noFlows        = "mcpx has no control of where data goes, so %s would run without it; remove the key to accept that"
	noRedaction    = "mcpx has no redaction, so %s would run without it; remove the key to accept that"
	noInterceptors = "mcpx has no interceptors, so %s would run without them; remove the key to accept that"
	noReadOnly     = "is a key of servers and groups, so %s would run without it; write it there"
)

// missingProtections are the root keys for protections that mcpx does not have, or not at the root.
func (l *loader) missingProtections() []key {
	return []key{
		{name: "sandbox", value: value{schema: `{"anyOf": [{"$ref": "#/$defs/plainOff"}, {"$ref": "#/$defs/disabled"}]}`, read: func(n *node) {
			if n.on() {
				l.fault(n, noSandbox, "local servers")
			}
		}}},
		{name: "sandboxEnabled", value: l.unprotected(noSandbox)},
		{name: "marks", value: l.unprotected(noFlows)},
		{name: "flows", value: l.unprotected(noFlows)},
		{name: "redact", value: l.unprotected(noRedaction)},
		{name: "interceptors", value: l.unprotected(noInterceptors)},
		{name: "read_only", value: l.unprotected(noReadOnly)},
	}
}

// sandbox makes a server unavailable if its key sandbox asks for a sandbox. If the key sandboxEnabled beside it is off, an object
// in the key sandbox does not ask for one: it only has the rules of a sandbox that is not used.
func (r *serverReader) sandbox(n *node) {
	rules := n.kind == objectKind && slices.ContainsFunc(n.parent.members, func(m *node) bool {
		return m.key == "sandboxEnabled" && m.kind != nullKind && m.off()
	})
	if !rules && n.on() {
		r.fail(n, noSandbox, "this server")
	}
}

// on reports whether a value turns on the protection that its key promises. Any object does so, unless its member enabled is off.
func (n *node) on() bool {
	if n.kind == objectKind && !slices.ContainsFunc(n.members, func(m *node) bool { return m.key == "enabled" && m.kind != nullKind }) {
		return true
	}
	return !n.off()
}

// off reports whether a value turns its key off. Such values are null, false, 0, an empty array, and the strings "", "off", "none"
// and "false" in any case. An object turns its key off if its member enabled is such a value. Without this member it does so if all
// its members, except notes, are such values.
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
			if m.key == "enabled" && m.kind != nullKind {
				return m.off()
			}
		}
		return !slices.ContainsFunc(n.members, func(m *node) bool { return !isComment(m.key) && !m.off() })
	}
	return true
}
