package config

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mcpx/internal/base/pattern"
)

// These are keys of other clients and of older systems (older versions of mcpx, MCP-Dock and MCP-PROXY) that mcpx knows and
// ignores. The lists rootOf... are for the root of the file, serverOf... for a server.
var (
	rootOfOtherClients = []string{
		"inputs", "gallery", "dev", "version", // VS Code; the key inputs is ignored, but a reference ${input:x} is a fault
		"globalShortcut", "preferences", "isUsingBuiltInNodeForMcp", // Claude Desktop
		"mcp", // Gemini CLI
	}
	rootOfOlderSystems   = []string{"toon_compression_min_size", "enable_aggregation"}
	serverOfOtherClients = []string{
		// These keys say how the client asks the user to approve calls. They are keys of Roo Code, Cline, Kiro, Gemini
		// CLI and Codex.
		"alwaysAllow", "autoApprove", "trust", "default_tools_approval_mode",
		"gallery", "dev", "version", // VS Code
		// These keys say how the client logs in with OAuth. They are keys of Claude Code, VS Code, Cursor, Codex and Gemini CLI.
		"auth", "scopes", "oauth_resource", "authProviderType", "headersHelper",
		// These keys say how the client loads and watches servers. They are keys of Claude Code, Codex, Roo Code, Warp and Gemini
		// CLI.
		"alwaysLoad", "required", "supports_parallel_tool_calls", "watchPaths", "start_on_launch", "extensionName",
		"name", "icon", "metadata", "settings", "tags", // information for users
	}
	serverOfOlderSystems = []string{"shutdown_grace", "port", "endpoint"}
)

// restricting are keys of servers in other clients' files by which users turn a server off, hide its tools or put it into a
// sandbox. If a file has one of them mistyped, that is a fault. If mcpx only ignored it, mcpx would allow more than the user wants.
var restricting = []string{
	"disabled", "includeTools", "excludeTools", "enabled_tools", "disabled_tools", "exposed_tools", "sandboxEnabled", "sandbox",
}

// ignoredKey reports whether a key is in one of the two lists of keys. If it is, a warning will name the key and the place where it
// is.
func (l *loader) ignoredKey(ofOtherClients, ofOlderSystems []string, key, place string) bool {
	switch {
	case slices.Contains(ofOtherClients, key):
		l.otherClients.add(label(key), place)
	case slices.Contains(ofOlderSystems, key):
		l.old.add(label(key), place)
	default:
		return false
	}
	return true
}

// Ignored reports whether mcpx ignores this key in the entry of a server, because the key belongs to another client or to an
// older system.
func Ignored(key string) bool {
	return slices.Contains(serverOfOtherClients, key) || slices.Contains(serverOfOlderSystems, key)
}

// someTime is the JSON Schema of a duration whose number may be in milliseconds.
const someTime = `{"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 31622400000}, {"allOf": [{"type": "string"}, {"$ref": "#/$defs/timeout"}]}]}`

// otherClientKeys returns the keys of servers in other clients' files that have an effect in mcpx. If a server also has mcpx's
// own key with the same meaning, mcpx's key is used; the order in the file does not matter. There are two exceptions: a server
// is off if either disabled or enabled says so, and it gets the headers and variables of all keys.
func (r *serverReader) otherClientKeys() []key {
	l, s := r.l, &r.s
	kind, headers := value{read: r.kind, schema: text}, value{read: r.headers, schema: scalars}
	return []key{
		// These keys say the type of the connection. They are keys of Copilot, Cline and others, and of older versions of mcpx,
		// MCP-Dock and MCP-PROXY.
		{name: "transport", value: kind},
		{name: "transportType", value: kind},
		{name: "transport_type", value: kind},
		// These are keys of Gemini CLI and Windsurf.
		{name: "httpUrl", value: value{read: r.url, schema: text}.andThen(func(*node) { r.httpURL = true })},
		{name: "serverUrl", value: value{read: r.url, schema: text}},
		// These are keys of Roo Code, Cline, Claude Desktop and others.
		{name: "disabled", value: l.boolean(&r.disabled)},
		{name: "timeout", value: value{read: r.timeout, schema: someTime}},
		// This is a key of VS Code.
		{name: "envFile", value: value{read: r.envFile, schema: text}},
		// This is a key of Zed.
		{name: "source", value: value{read: r.source, schema: `{}`}},
		// These are keys of Gemini CLI, Codex, Roo Code and Kiro.
		{name: "includeTools", value: r.allow()},
		{name: "enabled_tools", value: r.allow()},
		{name: "excludeTools", value: r.deny()},
		{name: "disabled_tools", value: r.deny()},
		{name: "disabledTools", value: r.deny()},
		// These are keys of Codex.
		{name: "http_headers", value: headers},
		{name: "env_http_headers", value: value{read: r.envHeaders, schema: scalars}},
		{name: "bearer_token_env_var", value: value{read: r.bearer, schema: text}},
		{name: "env_vars", value: value{read: r.envVars, schema: texts}},
		{name: "startup_timeout_sec", value: l.timeout(&s.ConnectTimeout)},
		{name: "startup_timeout_ms", value: value{schema: someTime, read: func(n *node) {
			l.duration(n, time.Millisecond, false, &s.ConnectTimeout)
		}}},
		{name: "tool_timeout_sec", value: l.timeout(&s.CallTimeout)},
		// These are keys of VS Code and others.
		{name: "sandboxEnabled", value: r.unprotected(noSandbox)},
		{name: "sandbox", value: value{read: r.sandbox, schema: `{}`}},
		// These are keys of mcpx, for protections that mcpx does not have yet.
		{name: "marks", value: r.unprotected(noFlows)},
		{name: "flows", value: r.unprotected(noFlows)},
		{name: "redact", value: r.unprotected(noRedaction)},
		{name: "interceptors", value: r.unprotected(noInterceptors)},
		// This is a key of Warp.
		{name: "working_directory", value: value{read: r.cwd, schema: text}},
		// These are keys of MCP-Dock, of MCP-PROXY, and of older versions of mcpx.
		{name: "startup_timeout", value: l.timeout(&s.ConnectTimeout)},
		{name: "stdio_mode", value: oneOf(l, &s.Framing, "newline", "content-length")},
		{name: "exposed_tools", value: r.exposed()},
		{name: "instructions", value: l.str(&s.Description)},
		{name: "auto_start", value: r.autoStart()},
		{name: "autoStart", value: r.autoStart()},
	}
}

// ofMCPProxy returns the root keys of MCP-PROXY that mean the same as keys of mcpx. If the file also has the key of mcpx, that key
// is used.
func (l *loader) ofMCPProxy() []key {
	c := l.cfg
	check := func(into *time.Duration) value {
		return value{schema: `{"anyOf": [{"const": 0}, ` + moreThanZero + `]}`, read: func(n *node) {
			if n.kind == numberKind && n.text == "0" { // means no checks, as in MCP-PROXY
				c.HealthCheck = false
				return
			}
			l.timeout(into).read(n)
		}}
	}
	return []key{
		{name: "response_timeout", value: value{schema: moreThanZero, read: l.timeout(&l.everyServer.CallTimeout).read}},
		{name: "healthcheck_interval", value: check(&c.Health.Interval)},
		{name: "healthcheck_timeout", value: check(&c.Health.Timeout)},
		{name: "structured_logging", value: value{schema: `{"type": "boolean"}`, read: func(n *node) {
			structured := false
			if l.boolean(&structured).read(n); structured {
				c.LogFormat = "json"
			}
		}}},
	}
}

// autoStart reads MCP-Dock's key auto_start. If it is false, MCP-Dock starts the server only when a user says so, and mcpx starts
// it when it is needed.
func (r *serverReader) autoStart() value {
	return value{schema: `{"type": "boolean"}`, read: func(n *node) {
		start := true
		if r.l.boolean(&start).read(n); !start {
			r.s.Start = "lazy"
		}
	}}
}

// exposed reads MCP-Dock's key exposed_tools, a list of the tools that exist. By default it is empty, which means all tools.
func (r *serverReader) exposed() value {
	return value{schema: texts, read: func(n *node) {
		if n.kind != arrayKind || len(n.items) > 0 {
			r.allow().read(n)
		}
	}}
}

// timeout reads the key timeout. A number up to 3600 is in seconds, as in Cline and Roo Code, which allow an hour at most. A larger
// number is in milliseconds, as in Gemini CLI and Claude Code.
func (r *serverReader) timeout(n *node) {
	const hour = 3600
	faults := len(r.l.faults)
	r.l.duration(n, time.Millisecond, false, &r.s.CallTimeout)
	if n.kind != numberKind || len(r.l.faults) > faults {
		return
	}
	if r.s.CallTimeout <= hour*time.Millisecond {
		r.s.CallTimeout *= 1000
	}
}

func (r *serverReader) envHeaders(n *node) {
	for _, m := range r.pairs(n) {
		r.fromEnv(m, m.key, "")
	}
}

// bearer reads the name of an environment variable that contains a bearer token.
func (r *serverReader) bearer(n *node) {
	if r.l.expectKind(stringKind, n) {
		r.fromEnv(n, "Authorization", "Bearer ")
	}
}

// fromEnv sets a header to prefix, followed by the value of the environment variable that n names.
func (r *serverReader) fromEnv(n *node, header, prefix string) {
	value, set := r.l.o.Getenv(n.text)
	if !set { // the fault does not quote the name, because some users write the token itself here
		r.fail(n, "the environment variable that it names is not set")
		return
	}
	r.secret(value, true)
	r.header(n, header, prefix+value)
}

// envVars reads the names of environment variables that the server inherits from mcpx. Variables that are not set are ignored, as
// in Codex.
func (r *serverReader) envVars(n *node) {
	names, _ := r.l.strings(n)
	for _, name := range names {
		if value, set := r.l.o.Getenv(name); set {
			r.secret(value, secretKey.MatchString(name))
			r.fileEnv = append(r.fileEnv, [2]string{name, value})
		}
	}
}

// envFile reads the path of a file with environment variables, and adds these variables to fileEnv. The lines of the file have the
// form KEY=VALUE or export KEY=VALUE; other lines are ignored.
func (r *serverReader) envFile(n *node) {
	var name string
	r.string(&name).read(n)
	if name == "" || r.failedAt(n) {
		return
	}
	if !filepath.IsAbs(name) { // ~/ has no special meaning here, as in other clients
		name = filepath.Join(filepath.Dir(r.l.cfg.Path), name)
	}
	data, err := r.l.o.ReadFile(name)
	if err != nil {
		r.fail(n, "cannot be read: %v", err)
		return
	}
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		key = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(key), "export "))
		if !ok || key == "" || strings.HasPrefix(key, "#") {
			continue
		}
		value = unquote(strings.TrimSpace(value))
		if strings.IndexByte(key+value, 0) >= 0 {
			r.fail(n, "must not contain a NUL character")
			return
		}
		// Short values are mostly modes and ports, not secrets, unless the name of the variable says otherwise.
		if named := secretKey.MatchString(key); named || len(value) >= 8 {
			r.secret(value, named)
		}
		r.fileEnv = append(r.fileEnv, [2]string{key, value})
	}
}

// unquote removes the quotes around a value in an env file. If the value has no quotes, unquote removes a comment after it.
func unquote(value string) string {
	for _, q := range []string{`"`, `'`} {
		if rest, ok := strings.CutPrefix(value, q); ok {
			if end := strings.Index(rest, q); end >= 0 {
				return rest[:end]
			}
		}
	}
	value, _, _ = strings.Cut(value, " #")
	return strings.TrimSpace(value)
}

// editorServers returns the object with the servers if the file is the settings file of an editor: context_servers in
// Zed, mcp.servers in VS Code. It returns nil for other files, and if the file has one of the keys that contain servers
// in config files of mcpx.
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

// protections are root keys without which clients may do more. For each key, the map has the kind that its value must have.
var protections = map[string]kind{
	"auth": objectKind, "auth_token": stringKind, "tls": objectKind, "audit": objectKind, "limits": objectKind, "groups": objectKind,
	"rate_limit_per_minute": numberKind, "confirm": stringKind, "pin": stringKind, "disabled_tools": arrayKind,
}

// protects reports whether a root key asks mcpx for a protection. It does not if its value is not of the kind in protections,
// because an editor may have a key with the same name, or if it turns the key off (see [node.on]).
func protects(m *node) bool {
	want, known := protections[m.key]
	return known && m.kind == want && m.on()
}

// Protections returns those root keys of a file that ask mcpx for a protection. A caller that takes only the servers of the file
// loses these protections. If the file is not JSON, the result is nil.
func Protections(path string, data []byte) (keys []string) {
	root, err := decode(path, data)
	if err != nil {
		return nil
	}
	for _, m := range root.members {
		if protects(m) {
			keys = append(keys, m.key)
		}
	}
	return keys
}

// zedCommand describes the value of command in files of older versions of Zed: there it is an object.
func (r *serverReader) zedCommand() object {
	return object{name: "zedCommand", keys: []key{
		{"path", r.string(&r.s.Command), ""},
		{"args", value{read: r.args, schema: texts}, ""},
		{"env", value{read: r.env, schema: scalars}, ""},
	}}
}

// source reads Zed's key source, which says where a server comes from. A server that comes from an extension is unavailable,
// because only Zed can start it.
func (r *serverReader) source(n *node) {
	if n.kind == stringKind && n.text == "extension" {
		r.fail(n, "is an extension, which only Zed can start; write the command that it runs")
	}
}

// nameInList reports whether the value of a key is the name of the server. This is only so if the servers are in an array.
func nameInList(key string) bool { return key == "name" || key == "id" }

// serverList reads an array of servers. Files of older versions of mcpx have such arrays, in which each server has a name; in files
// of MCP-PROXY, each server has an id.
func (l *loader) serverList(n *node) {
	for _, item := range n.items {
		if !l.expectKind(objectKind, item) {
			continue
		}
		name := ""
		for _, m := range item.members {
			if nameInList(m.key) && (name == "" || m.key == "name") {
				name = m.text
				l.expectKind(stringKind, m)
			}
		}
		l.server(name, item)
	}
}

// commandList reads an array of a program and its arguments, as in files of MCP-PROXY and opencode.
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

// proxies reports whether m is a key of MCP-Dock's second file, and adds a fault if so. MCP-Dock has two files: the second says
// which tools of the servers in the first are visible. If mcpx ignored the second file, hidden tools would be shown.
func (l *loader) proxies(m *node) bool {
	if !m.proxies() {
		return false
	}
	l.fault(m, dockProxies)
	return true
}

const dockProxies = `holds proxies of MCP-Dock; load its mcp.config.json, and write the exposed_tools of a proxy as ` +
	`"tools": {"allow": [...]} of its server`

func (n *node) proxies() bool {
	return (n.key == "mcpProxies" || n.key == "proxies") && n.kind == objectKind
}

// Foreign says why a file contains no servers for mcpx, if the file is known to be something else: TOML, INI, YAML, or the second
// file of MCP-Dock. It returns "" for all other files.
func Foreign(data []byte) string {
	data = withoutMark(data)
	root, err := parseJSON(data)
	if err != nil {
		return otherLanguage(data)
	}
	if at := slices.IndexFunc(root.members, (*node).proxies); at >= 0 {
		return root.members[at].key + " " + dockProxies
	}
	return ""
}

var (
	tomlLine = pattern.New(`^(\s*(#.*|;.*)?\r?\n)*(\[\[?[A-Za-z_][\w. "'/-]*\]|[A-Za-z_][\w.-]*[ \t]*=)`)
	// endpointServer matches the section with which files of mcp-endpoint-server begin.
	endpointServer = pattern.New(`^(\s*([#;].*)?\r?\n)*\[server\]\s`)
	yamlLine       = pattern.New(`^(\s*(#.*)?\r?\n|---\r?\n)*[A-Za-z_][\w-]*:[ \t]*\r?\n[ \t]*[A-Za-z_-]`)
)

// otherLanguage returns an error text if data looks like TOML, INI or YAML, and otherwise "".
func otherLanguage(data []byte) string {
	switch {
	case endpointServer.Match(data):
		return `the file is that of an mcp-endpoint-server, whose servers dial in: write its key as ` +
			`"dial": {"compat": "encrypted", "compat_key": KEY} into a config of mcpx (docs/dial.md)`
	case tomlLine.Match(data):
		return `the file looks like TOML or INI; mcpx reads JSON (mcpx init --from FILE takes the servers of Codex's config.toml)`
	case yamlLine.Match(data):
		return "the file looks like YAML; mcpx reads JSON"
	}
	return ""
}
