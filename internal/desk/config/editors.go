package config

// editorServers finds the servers in the settings of an editor, among all other settings: Zed's context_servers,
// VS Code's mcp.servers. It is nil for any other file, and for one that has servers under a key of ours.
func editorServers(root *node) (servers *node) {
	for _, m := range root.members {
		switch {
		case m.key == claudeServers || m.key == codeServers || m.key == oldServers:
			return nil
		case m.kind != objectKind:
		case m.key == "context_servers":
			servers = m
		case m.key == "mcp":
			for _, inner := range m.members {
				if inner.key == codeServers && inner.kind == objectKind {
					servers = inner
				}
			}
		}
	}
	return servers
}

// zedCommand describes the command of an older Zed, an object.
func (r *serverReader) zedCommand() object {
	return object{name: "zedCommand", keys: []key{
		{"path", r.string(&r.s.Command), ""},
		{"args", value{read: r.args, schema: texts}, ""},
		{"env", value{read: r.env, schema: scalars}, ""},
	}}
}

// source reads Zed's key for where a server comes from. Only Zed can start an extension.
func (r *serverReader) source(n *node) {
	if n.kind == stringKind && n.text == "extension" {
		r.fail(n, "is an extension, which only Zed can start; write the command that it runs")
	}
}
