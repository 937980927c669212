package config

import (
	"encoding/json"
	"slices"
	"strings"

	"mcpx/internal/base/conf"
)

// overrides reads repairs of what a server declares, by globs of tool names.
func (r *serverReader) overrides(path string, n *node) {
	r.s.Overrides = nil
	for at, m := range r.l.named(path, n) {
		if !r.l.glob(at, m.offset, m.key) || !r.l.is(objectKind, at, m.value) {
			continue
		}
		one := conf.Override{Glob: m.key}
		r.l.members(at, m.value, r.override(&one), nil)
		r.s.Overrides = append(r.s.Overrides, one)
	}
}

func (r *serverReader) override(one *conf.Override) object {
	return object{name: "override", keys: []key{
		{"name", value{schema: text, read: r.toolName(one)}, "another name of one tool"},
		{"description", value{schema: text, read: func(path string, n *node) {
			if r.l.is(stringKind, path, n) {
				one.Description = &n.text
			}
		}}, "in place of the server's"},
		{"annotations", value{schema: annotationsSchema, read: r.annotations(&one.Annotations)}, "members that replace the tool's own"},
		{"arguments", value{schema: `{"type": "object"}`, read: func(path string, n *node) {
			if r.l.is(objectKind, path, n) {
				one.Arguments = n.json()
			}
		}}, "arguments that every call is sent with, and that are not shown"},
	}}
}

const annotationsSchema = `{"type": "object", "properties": {"readOnlyHint": {"type": "boolean"}, "destructiveHint": {"type": "boolean"},
	"idempotentHint": {"type": "boolean"}, "openWorldHint": {"type": "boolean"}}}`

// hints are the annotations that must be true or false: a tool that is taken for
// read-only runs unasked, and "true" in quotes would be no such hint.
var hints = []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}

// annotations reads the members that replace those of a tool.
func (r *serverReader) annotations(into *json.RawMessage) func(path string, n *node) {
	return func(path string, n *node) {
		if !r.l.is(objectKind, path, n) {
			return
		}
		for _, m := range n.members {
			at := join(path, m.key)
			if slices.Contains(hints, m.key) {
				r.l.boolean(new(bool)).read(at, m.value)
			} else if near := nearest(m.key, hints); near != "" {
				r.l.fault(at, m.offset, "unknown key %s, did you mean %q?", quote(m.key), near)
			}
		}
		*into = n.json()
	}
}

// toolName reads another name of one tool.
func (r *serverReader) toolName(one *conf.Override) func(path string, n *node) {
	return func(path string, n *node) {
		switch {
		case !r.l.is(stringKind, path, n):
		case n.text == "" || len(n.text) > maxNameLen || !serverName.MatchString(n.text):
			r.l.fault(path, n.offset, "must be 1 to %d letters (a-z), digits, '.', '_' and '-'", maxNameLen)
		case strings.ContainsAny(one.Glob, `*?[\`):
			r.l.fault(path, n.offset, "is the name of one tool, so that its override cannot be a pattern")
		case slices.ContainsFunc(r.s.Overrides, func(o conf.Override) bool { return o.Name == n.text }):
			r.l.fault(path, n.offset, "is the name of another tool here already")
		default:
			one.Name = n.text
		}
	}
}
