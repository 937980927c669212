package config

import (
	"slices"
	"strings"

	"mcpx/internal/base/pattern"
)

// separators are what the providers of models allow in names.
var separators = pattern.New(`^[A-Za-z0-9_-]{1,8}$`)

func (l *loader) separator(path string, n *node) {
	if l.is(stringKind, path, n) && !separators.MatchString(n.text) {
		l.fault(path, n.offset, "must be 1 to 8 letters (a-z), digits, '_' or '-'")
		return
	}
	l.cfg.Separator = n.text
}

// view reads what a client gets; [Config.CheckView] finds out whether it is there.
func (l *loader) view(path string, n *node) {
	if l.is(stringKind, path, n) {
		l.cfg.View, l.viewAt = n.text, place{path, n.offset}
	}
}

// groups reads the named parts of the catalogue.
func (l *loader) groups(path string, n *node) {
	for at, m := range l.named(path, n) {
		if !serverName.MatchString(m.key) || len(m.key) > maxNameLen {
			l.fault(at, m.offset, "must have a name of letters (a-z), digits, '.', '_' and '-', of at most %d characters", maxNameLen)
			continue
		}
		l.group(m.key, at, m.value)
	}
	slices.SortFunc(l.cfg.Groups, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
}

// group reads one group: an object, or only the array of its servers.
func (l *loader) group(name, path string, n *node) {
	g := Group{Name: name, View: ViewTwoTools}
	o := l.groupObject(&g)
	switch {
	case n.kind == arrayKind:
		o.key("servers").read(path, n)
	case l.is(objectKind, path, n):
		l.members(path, n, o, nil)
	}
	l.cfg.Groups = append(l.cfg.Groups, g)
}

func (l *loader) groupObject(g *Group) object {
	return object{name: "group", keys: []key{
		{"servers", value{schema: texts, read: func(path string, n *node) { l.inGroups = append(l.inGroups, groupServers{g.Name, path, n}) }}, "the names of its servers; without it all"},
		{"tools", l.nested(func() object { return l.toolFilter("groupTools", &g.Tools.Allow, &g.Tools.Deny) }), "which of their tools it has: `{\"allow\": [glob], \"deny\": [glob]}` of `SERVER.TOOL`; `deny` wins"},
		{"read_only", l.boolean(&g.ReadOnly), "only tools that declare themselves read-only"},
		{"confirm", switched(l, &g.Confirm, "destructive", "all"), "which calls a person must confirm; the stricter one of this and the server's is used"},
		{"view", oneOf(l, &g.View, ViewTwoTools, ViewTools), "how it is shown"},
		{"catalogue_token_budget", l.count(&g.CatalogueTokenBudget, 1), "in place of the one of the file"},
	}}
}

// toolFilter is globs of SERVER.TOOL.
func (l *loader) toolFilter(name string, allow, deny *[]string) object {
	return object{name: name, keys: []key{
		{"allow", l.allowed(l.toolGlobs(allow)), "the only tools that exist"},
		{"deny", l.toolGlobs(deny), "tools that do not exist"},
	}}
}

// groupServers is the value that names the servers of a group.
type groupServers struct {
	group, path string
	node        *node
}

// finishViews reads the servers of all groups, once the names are known that they are
// served under, and checks the view.
func (l *loader) finishViews() {
	for _, in := range l.inGroups {
		names, ok := l.strings(in.path, in.node)
		if !ok {
			continue
		}
		g := l.cfg.Group(in.group)
		g.Servers = []string{}
		for i, name := range names {
			served := l.cfg.Served(name)
			if served == "" {
				l.fault(index(in.path, i), in.node.items[i].offset, "there is no server %s%s", quote(name), l.cfg.didYouMean(name))
				continue
			}
			g.Servers = append(g.Servers, served)
		}
	}
	if text := l.cfg.CheckView(l.cfg.View); text != "" {
		l.fault(l.viewAt.path, l.viewAt.offset, "%s", text)
	}
}

// CheckView says what is wrong with a view; empty: it is one of this config.
func (c *Config) CheckView(view string) string {
	if name, ok := strings.CutPrefix(view, ViewServer); ok {
		if c.Served(name) == "" {
			return "there is no server " + quote(name) + c.didYouMean(name)
		}
		return ""
	}
	if name, ok := strings.CutPrefix(view, ViewGroup); ok {
		if c.Group(name) == nil {
			return "there is no group " + quote(name)
		}
		return ""
	}
	if view != ViewTwoTools && view != ViewTools {
		return "must be two_tools, tools, servers/NAME or groups/NAME"
	}
	return ""
}

func (c *Config) didYouMean(name string) string {
	names := make([]string, len(c.Servers))
	for i := range c.Servers {
		names[i] = c.Servers[i].Name
	}
	if near := nearest(name, names); near != "" {
		return ", did you mean " + quote(near) + "?"
	}
	return ""
}

// Group finds a group by its name; nil if there is none.
func (c *Config) Group(name string) *Group {
	i := slices.IndexFunc(c.Groups, func(g Group) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Groups[i]
}
