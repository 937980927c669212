package config

import (
	"cmp"
	"strings"
)

// Right says what some principals may see and do.
type Right struct {
	// Principals are globs of names; Groups and Scopes are names. The rule is for
	// principals that have one of each that is not nil.
	Principals, Groups, Scopes []string
	// Servers are globs of names, those without a wildcard as they are served; nil = all.
	Servers []string
	// Tools are globs over SERVER.TOOL.
	Tools ToolFilter
	// ReadOnly: only tools that are declared read-only exist.
	ReadOnly bool
	// Views are globs over the values of [Config.View]; nil = all.
	Views []string
	// Confirm is off, destructive or all; the strictest of all that apply is used.
	Confirm string
	// Admin opens the state of mcpx and the list of its servers.
	Admin bool
}

// rights reads the rules of auth.rights. An unknown key is a fault: it may be meant to take
// something away.
func (l *loader) rights(path string, n *node) {
	if !l.is(arrayKind, path, n) {
		return
	}
	l.authorization().Rights = []Right{}
	for i, item := range n.items {
		if at := index(path, i); l.is(objectKind, at, item) {
			l.right(at, item)
		}
	}
}

func (l *loader) right(path string, n *node) {
	r := Right{Confirm: "off"}
	l.only(path, n, map[string]reader{
		"principals": l.some(l.globs(&r.Principals)),
		"groups":     l.some(l.names(&r.Groups)),
		"scopes":     l.some(l.names(&r.Scopes)),
		"servers":    l.globs(&r.Servers),
		"tools": func(path string, n *node) {
			if l.is(objectKind, path, n) {
				l.only(path, n, map[string]reader{"allow": l.allowed(l.toolGlobs(&r.Tools.Allow)), "deny": l.toolGlobs(&r.Tools.Deny)})
			}
		},
		"read_only": l.boolean(&r.ReadOnly),
		"views":     l.globs(&r.Views),
		"confirm":   l.switched(&r.Confirm, "destructive", "all"),
		"admin":     l.boolean(&r.Admin),
	})
	if r.Principals == nil && r.Groups == nil && r.Scopes == nil {
		l.fault(path, n.offset, `is for nobody: it needs principals, groups or scopes; "principals": ["*"] is everybody`)
	}
	a := l.authorization()
	a.Rights = append(a.Rights, r)
}

// some wraps the reader of those that a rule is for: an empty list could mean nobody or
// everybody, so it is a fault.
func (l *loader) some(read reader) reader { return l.notEmpty(read, "the rule does not ask for it") }

// servedRights gives the rules the names that servers are served under, in place of those
// in the file.
func (l *loader) servedRights() {
	if l.cfg.Auth == nil {
		return
	}
	for _, r := range l.cfg.Auth.Rights {
		for i, name := range r.Servers {
			r.Servers[i] = cmp.Or(l.cfg.Served(name), name)
		}
		for _, globs := range [][]string{r.Tools.Allow, r.Tools.Deny} {
			for i, glob := range globs {
				for _, s := range l.cfg.Servers {
					if tool, ok := strings.CutPrefix(glob, s.Written+"."); ok && s.Written != "" {
						globs[i] = s.Name + "." + tool
					}
				}
			}
		}
	}
}
