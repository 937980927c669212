package config

import (
	"encoding/json"
	"slices"
	"strings"

	"mcpx/internal/base/conf"
)

func (r *serverReader) overrides(n *node) {
	r.s.Overrides = nil
	for m := range r.l.named(n) {
		if !r.l.glob(m, m.key) || !r.l.expectKind(objectKind, m) {
			continue
		}
		one := conf.Override{Glob: m.key}
		r.l.members(m, r.override(&one), nil)
		r.s.Overrides = append(r.s.Overrides, one)
	}
}

func (r *serverReader) override(one *conf.Override) object {
	return object{name: "override", keys: []key{
		{"name", value{schema: text, read: r.toolName(one)}, "another name of one tool"},
		{"description", value{schema: text, read: func(n *node) {
			if r.l.expectKind(stringKind, n) {
				one.Description = &n.text
			}
		}}, "replaces the server's description"},
		{"annotations", value{schema: annotationsSchema, read: r.annotations(&one.Annotations)}, "members that replace the tool's own"},
		{"arguments", value{schema: `{"type": "object"}`, read: func(n *node) {
			if r.l.expectKind(objectKind, n) {
				one.Arguments = n.json()
			}
		}}, "arguments that are added to every call, and hidden from clients"},
		{"marks", r.unprotected(noFlows), ""},
	}}
}

const annotationsSchema = `{"type": "object", "properties": {"readOnlyHint": {"type": "boolean"}, "destructiveHint": {"type": "boolean"},
	"idempotentHint": {"type": "boolean"}, "openWorldHint": {"type": "boolean"}}}`

// hints are the annotations of a tool by which mcpx and clients decide, for example, whether the user must confirm a call.
// Their values must be true or false. Any other value, such as the string "true", is a fault, because it would have no effect.
var hints = []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}

func (r *serverReader) annotations(into *json.RawMessage) func(n *node) {
	return func(n *node) {
		if !r.l.expectKind(objectKind, n) {
			return
		}
		for _, m := range n.members {
			if slices.Contains(hints, m.key) {
				r.l.boolean(new(bool)).read(m)
			} else if near := nearest(m.key, hints); near != "" {
				r.l.fault(m, "unknown key %s, did you mean %q?", quote(m.key), near)
			}
		}
		*into = n.json()
	}
}

func (r *serverReader) toolName(one *conf.Override) func(n *node) {
	return func(n *node) {
		switch {
		case !r.l.expectKind(stringKind, n):
		case n.text == "" || len(n.text) > maxNameLen || !serverName.MatchString(n.text):
			r.l.fault(n, "must be 1 to %d letters (a-z), digits, '.', '_' and '-'", maxNameLen)
		case strings.ContainsAny(one.Glob, `*?[\`):
			r.l.fault(n, "can only rename one tool, so the override must be for a tool's name, not a pattern")
		case slices.ContainsFunc(r.s.Overrides, func(o conf.Override) bool { return o.Name == n.text }):
			r.l.fault(n, "is already the name of another tool here")
		default:
			one.Name = n.text
		}
	}
}
