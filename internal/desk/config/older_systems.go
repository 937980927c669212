package config

import "mcpx/internal/base/pattern"

// What the files of the systems have that mcpx takes over from.

// nameInList reports whether a key is the name of a server in a list of servers.
func nameInList(key string) bool { return key == "name" || key == "id" }

// serverList reads servers that are a list: of the older mcpx, each with a name,
// and of MCP-PROXY, each with an id.
func (l *loader) serverList(n *node) {
	for _, item := range n.items {
		if !l.is(objectKind, item) {
			continue
		}
		name := ""
		for _, m := range item.members {
			if nameInList(m.key) && (name == "" || m.key == "name") {
				name = m.text
				l.is(stringKind, m)
			}
		}
		l.server(name, item)
	}
}

// commandList reads a program and its arguments from one list, as MCP-PROXY and
// opencode have them.
func (r *serverReader) commandList(n *node) {
	words, ok := r.l.strings(n)
	if !ok || len(words) == 0 {
		return
	}
	for i := range words {
		words[i] = r.expand(n.items[i])
	}
	r.s.Command, r.commandArgs = words[0], words[1:]
	r.argSecrets(r.commandArgs)
}

// proxies refuses the second file of MCP-Dock. Which tools each of its proxies
// shows is said there, about servers of the other file: to ignore it would show
// tools that were hidden.
func (l *loader) proxies(m *node) bool {
	if m.key != "mcpProxies" && m.key != "proxies" || m.kind != objectKind {
		return false
	}
	l.fault(m, `holds proxies of MCP-Dock; load its mcp.config.json, and write the exposed_tools of a proxy as `+
		`"tools": {"allow": [...]} of its server`)
	return true
}

var (
	tomlLine = pattern.New(`^(\s*(#.*|;.*)?\r?\n)*(\[\[?[A-Za-z_][\w. "'/-]*\]|[A-Za-z_][\w.-]*[ \t]*=)`)
	yamlLine = pattern.New(`^(\s*(#.*)?\r?\n|---\r?\n)*[A-Za-z_][\w-]*:[ \t]*\r?\n[ \t]*[A-Za-z_-]`)
)

// otherLanguage says that a file which is no JSON is of another language; empty:
// it does not look so.
func otherLanguage(data []byte) string {
	switch {
	case tomlLine.Match(data):
		return `the file looks like TOML or INI; mcpx reads JSON (mcpx init --from FILE takes the servers of Codex's file)`
	case yamlLine.Match(data):
		return "the file looks like YAML; mcpx reads JSON"
	}
	return ""
}
