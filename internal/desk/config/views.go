package config

import (
	"slices"
	"strings"

	"mcpx/internal/base/pattern"
)

// separators matches the strings that may stand between the name of a server and the name of its tool. All model providers allow
// these characters in the names of tools.
var separators = pattern.New(`^[A-Za-z0-9_-]{1,8}$`)

func (l *loader) separator(n *node) {
	if l.expectKind(stringKind, n) && !separators.MatchString(n.text) {
		l.fault(n, "must be 1 to 8 letters (a-z), digits, '_' or '-'")
		return
	}
	l.cfg.Separator = n.text
}

// view reads the key view. finishViews checks the value after all servers and groups are read.
func (l *loader) view(n *node) {
	if l.expectKind(stringKind, n) {
		l.cfg.View, l.viewAt = n.text, n
	}
}

func (l *loader) groups(n *node) {
	for m := range l.named(n) {
		if !serverName.MatchString(m.key) || len(m.key) > maxNameLen {
			l.fault(m, "must have a name of letters (a-z), digits, '.', '_' and '-', of at most %d characters", maxNameLen)
			continue
		}
		l.group(m.key, m)
	}
	slices.SortFunc(l.cfg.Groups, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
}

// group reads a group, which is an object, or an array with the names of the group's servers.
func (l *loader) group(name string, n *node) {
	g := Group{Name: name, View: ViewTwoTools}
	o := l.groupObject(&g)
	switch {
	case n.kind == arrayKind:
		o.key("servers").read(n)
	case l.expectKind(objectKind, n):
		l.members(n, o, nil)
	}
	l.cfg.Groups = append(l.cfg.Groups, g)
}

func (l *loader) groupObject(g *Group) object {
	return object{name: "group", keys: []key{
		{"servers", value{schema: texts, read: func(n *node) { l.inGroups = append(l.inGroups, groupServers{g.Name, n}) }}.notNull(), "the names of its servers; without it all"},
		{"tools", l.nested(func() object { return l.toolFilter("groupTools", &g.Tools.Allow, &g.Tools.Deny) }), "which of their tools it has: `{\"allow\": [glob], \"deny\": [glob]}` of `SERVER.TOOL`; `deny` wins"},
		{"read_only", l.boolean(&g.ReadOnly), "only tools that declare themselves read-only"},
		{"confirm", switched(l, &g.Confirm, "destructive", "all"), "which calls the user must confirm; the stricter one of this and the server's is used"},
		{"view", oneOf(l, &g.View, ViewTwoTools, ViewTools), "how it is shown"},
		{"catalogue_token_budget", l.count(&g.CatalogueTokenBudget, 1), "replaces the budget of the file"},
	}}
}

func (l *loader) toolFilter(name string, allow, deny *[]string) object {
	return object{name: name, keys: []key{
		{"allow", l.allowed(l.toolGlobs(allow)), "the only tools that exist"},
		{"deny", l.toolGlobs(deny), "tools that do not exist"},
	}}
}

// groupServers is the name of a group, with the node of its key servers.
type groupServers struct {
	group string
	node  *node
}

// finishViews replaces the names of servers in groups by the names that clients see, and checks the key view. It is called
// after all servers are read and safeNames has renamed some of them.
func (l *loader) finishViews() {
	for _, in := range l.inGroups {
		names, ok := l.strings(in.node)
		if !ok {
			continue
		}
		g := l.cfg.Group(in.group)
		g.Servers = []string{}
		for i, name := range names {
			served := l.cfg.Served(name)
			if served == "" {
				l.fault(in.node.items[i], "there is no server %s%s", quote(name), l.cfg.didYouMean(name))
				continue
			}
			g.Servers = append(g.Servers, served)
		}
	}
	if text := l.cfg.CheckView(l.cfg.View); text != "" {
		l.fault(l.viewAt, "%s", text)
	}
}

// CheckView returns "" if the config has this view. Otherwise it returns the reason why not.
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

// Group returns the group with this name, or nil if there is none.
func (c *Config) Group(name string) *Group {
	i := slices.IndexFunc(c.Groups, func(g Group) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Groups[i]
}
