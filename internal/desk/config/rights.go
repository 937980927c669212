package config

import (
	"cmp"
	"strings"

	"mcpx/internal/base/conf"
)

// rights reads the rules of auth.rights. An unknown key is a fault: it may be meant to take
// something away.
func (l *loader) rights(path string, n *node) {
	if !l.is(arrayKind, path, n) {
		return
	}
	l.authorization().Rights = []conf.Right{}
	for i, item := range n.items {
		if at := index(path, i); l.is(objectKind, at, item) {
			l.right(at, item)
		}
	}
}

func (l *loader) right(path string, n *node) {
	var r conf.Right
	l.members(path, n, l.rightObject(&r), nil)
	if r.Principals == nil && r.Groups == nil && r.Scopes == nil {
		l.fault(path, n.offset, `is for nobody: it needs principals, groups or scopes; "principals": ["*"] is everybody`)
	}
	a := l.authorization()
	a.Rights = append(a.Rights, r)
}

func (l *loader) rightObject(r *conf.Right) object {
	return object{name: "right", strict: true, keys: []key{
		{"principals", l.some(l.globs(&r.Principals)), "globs of names. Where a rule has several of `principals`, `groups` and `scopes`, a principal needs one of each; one of the three is needed. `[\"*\"]` is everybody; any other glob without an `@` fits tokens and certificates only, and of `SUB@ISSUER` both parts are matched by themselves"},
		{"groups", l.some(l.names(&r.Groups)), "names of groups"},
		{"scopes", l.some(l.names(&r.Scopes)), "names of scopes"},
		{"servers", l.globs(&r.Servers), "globs of names; without it all, `[]` is none"},
		{"tools", l.nested(func() object {
			tools := l.toolFilter("rightTools", &r.Allow, &r.Deny)
			tools.strict = true
			return tools
		}), "`allow` and `deny`, globs of `SERVER.TOOL`; `deny` wins, within its rule"},
		{"read_only", l.boolean(&r.ReadOnly), "only tools that declare `readOnlyHint`"},
		{"views", l.globs(&r.Views), "globs of `two_tools`, `tools`, `servers/NAME`, `groups/NAME`: in other views the rule gives nothing; without it all"},
		{"confirm", switched(l, &r.Confirm, "destructive", "all"), "which of its calls a person must confirm; the strictest is used of this, the server's, the group's and the other rules that give the tool"},
		{"admin", l.boolean(&r.Admin), "`/status`, `/metrics`, the page at `/` and `/api/servers`"},
	}}
}

// some is a list of whom a rule is for: an empty list could mean nobody or
// everybody, so it is a fault.
func (l *loader) some(list value) value { return l.notEmpty(list, "the rule does not ask for it") }

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
		for _, globs := range [][]string{r.Allow, r.Deny} {
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
