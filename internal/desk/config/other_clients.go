package config

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Keys that are known and mean nothing here: those of the root and those of a server,
// of other clients and of older systems.
var (
	rootOfOtherClients = []string{
		"inputs", "gallery", "dev", "version", // VS Code; a ${input:x} is a fault where it is used
		"globalShortcut", "preferences", "isUsingBuiltInNodeForMcp", // Claude Desktop
		"mcp", // Gemini CLI
	}
	rootOfOlderSystems = []string{
		"toon_compression_min_size", "enable_aggregation", "response_timeout", "structured_logging",
		"healthcheck_interval", "healthcheck_timeout",
	}
	serverOfOtherClients = []string{
		// Approval in the client: Roo Code, Cline, Kiro; Gemini CLI; Codex.
		"alwaysAllow", "autoApprove", "trust", "default_tools_approval_mode",
		"gallery", "dev", "version", // VS Code
		// OAuth of the client: Claude Code, VS Code, Cursor, Codex, Gemini CLI.
		"auth", "scopes", "oauth_resource", "authProviderType", "headersHelper",
		// Loading and watching: Claude Code, Codex, Roo Code, Warp, Gemini CLI.
		"alwaysLoad", "required", "supports_parallel_tool_calls", "watchPaths", "start_on_launch", "extensionName",
		"name", "icon", "metadata", "settings", "tags", // for people
	}
	serverOfOlderSystems = []string{"auto_start", "shutdown_grace", "port", "endpoint"}
)

// ignoredKey notes a key that is known and ignored; false if it is in neither list.
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

// Ignored reports whether a key of a server is known and means nothing to mcpx.
func Ignored(key string) bool {
	return slices.Contains(serverOfOtherClients, key) || slices.Contains(serverOfOlderSystems, key)
}

// someTime is JSON Schema of a time whose number is in milliseconds.
const someTime = `{"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 31622400000}, {"allOf": [{"type": "string"}, {"$ref": "#/$defs/timeout"}]}]}`

// otherClientKeys are the keys of other clients' servers that are honoured. A key of
// our own for the same thing wins, wherever it stands.
func (r *serverReader) otherClientKeys() []key {
	l, s := r.l, &r.s
	kind, headers := value{read: r.kind, schema: text}, value{read: r.headers, schema: scalars}
	return []key{
		// Kind of connection: Copilot, Cline and others; the older systems.
		{name: "transport", value: kind},
		{name: "transportType", value: kind},
		{name: "transport_type", value: kind},
		// Gemini CLI, Windsurf.
		{name: "httpUrl", value: value{read: r.url, schema: text}.then(func(string, *node) { r.httpURL = true })},
		{name: "serverUrl", value: value{read: r.url, schema: text}},
		// Roo Code, Cline, Claude Desktop and others.
		{name: "disabled", value: l.boolean(&r.disabled)},
		{name: "timeout", value: value{read: r.timeout, schema: someTime}},
		// VS Code.
		{name: "envFile", value: value{read: r.envFile, schema: text}},
		// Zed.
		{name: "source", value: value{read: r.source, schema: `{}`}},
		// Gemini CLI, Codex, Roo Code and Kiro.
		{name: "includeTools", value: r.allow()},
		{name: "enabled_tools", value: r.allow()},
		{name: "excludeTools", value: r.deny()},
		{name: "disabled_tools", value: r.deny()},
		{name: "disabledTools", value: r.deny()},
		// Codex.
		{name: "http_headers", value: headers},
		{name: "env_http_headers", value: value{read: r.envHeaders, schema: scalars}},
		{name: "bearer_token_env_var", value: value{read: r.bearer, schema: text}},
		{name: "env_vars", value: value{read: r.envVars, schema: texts}},
		{name: "startup_timeout_sec", value: l.timeout(&s.ConnectTimeout)},
		{name: "startup_timeout_ms", value: value{schema: someTime, read: func(path string, n *node) {
			l.duration(path, n, time.Millisecond, false, &s.ConnectTimeout)
		}}},
		{name: "tool_timeout_sec", value: l.timeout(&s.CallTimeout)},
		// VS Code and others.
		{name: "sandboxEnabled", value: r.unprotected(noSandbox)},
		{name: "sandbox", value: value{read: r.sandbox, schema: `{}`}},
		// Warp.
		{name: "working_directory", value: r.string(&s.Cwd)},
		// The older systems.
		{name: "startup_timeout", value: l.timeout(&s.ConnectTimeout)},
		{name: "stdio_mode", value: oneOf(l, &s.Framing, "newline", "content-length")},
		{name: "exposed_tools", value: r.unprotected(`is not built yet; write "tools": {"allow": [...]} in its place`)},
		{name: "instructions", value: l.str(&s.Description)},
	}
}

// timeout is in seconds for Cline and Roo Code (at most an hour), and in
// milliseconds for Gemini CLI and Claude Code. So up to 3600 are seconds.
func (r *serverReader) timeout(path string, n *node) {
	const hour = 3600
	faults := len(r.l.faults)
	r.l.duration(path, n, time.Millisecond, false, &r.s.CallTimeout)
	if n.kind != numberKind || len(r.l.faults) > faults {
		return
	}
	if r.s.CallTimeout <= hour*time.Millisecond {
		r.s.CallTimeout *= 1000
	}
}

// envHeaders are headers whose values are in the named variables.
func (r *serverReader) envHeaders(path string, n *node) {
	for _, m := range r.pairs(path, n) {
		r.fromEnv(join(path, m.key), m.value.offset, m.key, "", m.value.text)
	}
}

// bearer is a token in a named variable.
func (r *serverReader) bearer(path string, n *node) {
	if r.l.is(stringKind, path, n) {
		r.fromEnv(path, n.offset, "Authorization", "Bearer ", n.text)
	}
}

func (r *serverReader) fromEnv(path string, offset int, header, prefix, name string) {
	value, set := r.l.o.Getenv(name)
	if !set {
		// Not with its name: people put the token itself here.
		r.fail(path, offset, "the environment variable that it names is not set")
		return
	}
	r.secret(value, true)
	r.header(path, offset, header, prefix+value)
}

// envVars are names of variables that the child gets as mcpx has them. One that
// is not set is left out, as Codex does.
func (r *serverReader) envVars(path string, n *node) {
	names, _ := r.l.strings(path, n)
	for _, name := range names {
		if value, set := r.l.o.Getenv(name); set {
			r.secret(value, secretKey.MatchString(name))
			r.fileEnv = append(r.fileEnv, [2]string{name, value})
		}
	}
}

// envFile reads a file of KEY=VALUE lines; env wins over it. A relative name is
// looked for beside the config file.
func (r *serverReader) envFile(path string, n *node) {
	var name string
	r.string(&name).read(path, n)
	if name == "" || r.failedAt(path) {
		return
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(r.l.cfg.Path), name)
	}
	data, err := r.l.o.ReadFile(name)
	if err != nil {
		r.fail(path, n.offset, "cannot be read: %v", err)
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
			r.fail(path, n.offset, "must not contain a NUL character")
			return
		}
		// Such files have modes and ports too, which are no secrets.
		if named := secretKey.MatchString(key); named || len(value) >= 8 {
			r.secret(value, named)
		}
		r.fileEnv = append(r.fileEnv, [2]string{key, value})
	}
}

// unquote takes the quotes off a value of an env file, and a comment that
// follows a value without quotes.
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
