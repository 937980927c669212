package config

// Editors keep their servers among all their other settings.

// settingsServers is where the servers of an editor's settings are.
type settingsServers struct {
	key     string // of the root
	inner   string // in there; empty: the servers are right under key
	servers *node
}

// editorServers finds the servers of a settings file: Zed's context_servers, VS
// Code's mcp.servers. It is nil for any other file, and for one that has servers as
// mcpx does.
func editorServers(root *node) *settingsServers {
	var found *settingsServers
	for _, m := range root.members {
		switch {
		case m.key == claudeServers || m.key == codeServers || m.key == oldServers:
			return nil
		case m.value.kind != objectKind:
		case m.key == "context_servers":
			found = &settingsServers{key: m.key, servers: m.value}
		case m.key == "mcp":
			for _, inner := range m.value.members {
				if inner.key == codeServers && inner.value.kind == objectKind {
					found = &settingsServers{m.key, inner.key, inner.value}
				}
			}
		}
	}
	return found
}

// zedCommand is the command of an older Zed, an object.
func (r *serverReader) zedCommand() object {
	return object{name: "zedCommand", keys: []key{
		{"path", r.string(&r.s.Command), ""},
		{"args", value{read: r.args, schema: texts}, ""},
		{"env", value{read: r.env, schema: scalars}, ""},
	}}
}

// source reads where a server of Zed comes from: Zed alone can start an extension.
func (r *serverReader) source(path string, n *node) {
	if n.kind == stringKind && n.text == "extension" {
		r.fail(path, n.offset, "is an extension, which only Zed can start; write the command that it runs")
	}
}
