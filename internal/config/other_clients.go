package config

import (
	"path/filepath"
	"strings"
	"time"
)

// ignoredReason is why a known key means nothing to mcpx.
type ignoredReason byte

const (
	ofOtherClient ignoredReason = iota + 1
	ofOlderSystem
)

// rootIgnored are keys of the root that are known and mean nothing here.
var rootIgnored = map[string]ignoredReason{
	// VS Code. A ${input:x} is a fault where it is used.
	"inputs":  ofOtherClient,
	"gallery": ofOtherClient,
	"dev":     ofOtherClient,
	"version": ofOtherClient,
	// Claude Desktop.
	"globalShortcut":           ofOtherClient,
	"preferences":              ofOtherClient,
	"isUsingBuiltInNodeForMcp": ofOtherClient,
	// Gemini CLI.
	"mcp": ofOtherClient,

	"toon_compression_min_size": ofOlderSystem,
	"enable_aggregation":        ofOlderSystem,
	"response_timeout":          ofOlderSystem,
	"structured_logging":        ofOlderSystem,
	"healthcheck_interval":      ofOlderSystem,
	"healthcheck_timeout":       ofOlderSystem,
}

// serverIgnored are keys of a server that are known and mean nothing here.
var serverIgnored = map[string]ignoredReason{
	// Approval in the client: Roo Code, Cline, Kiro; Gemini CLI; Codex.
	"alwaysAllow":                 ofOtherClient,
	"autoApprove":                 ofOtherClient,
	"trust":                       ofOtherClient,
	"default_tools_approval_mode": ofOtherClient,
	// VS Code.
	"gallery": ofOtherClient,
	"dev":     ofOtherClient,
	"version": ofOtherClient,
	// OAuth of the client: Claude Code, VS Code, Cursor, Codex, Gemini CLI.
	"auth":             ofOtherClient,
	"scopes":           ofOtherClient,
	"oauth_resource":   ofOtherClient,
	"authProviderType": ofOtherClient,
	"headersHelper":    ofOtherClient,
	// Loading and watching: Claude Code, Codex, Roo Code, Warp, Gemini CLI.
	"alwaysLoad":                   ofOtherClient,
	"required":                     ofOtherClient,
	"supports_parallel_tool_calls": ofOtherClient,
	"watchPaths":                   ofOtherClient,
	"start_on_launch":              ofOtherClient,
	"extensionName":                ofOtherClient,
	// For people.
	"name":     ofOtherClient,
	"icon":     ofOtherClient,
	"metadata": ofOtherClient,
	"tags":     ofOtherClient,

	"auto_start": ofOlderSystem,
	"port":       ofOlderSystem,
	"endpoint":   ofOlderSystem,
}

// otherClientKeys are the keys of other clients' servers that are honoured. A key of
// our own for the same thing wins, wherever it stands.
var otherClientKeys = map[string]func(r *serverReader, path string, n *node){
	// Kind of connection: Copilot, Cline and others; the older systems.
	"transport":      (*serverReader).kind,
	"transportType":  (*serverReader).kind,
	"transport_type": (*serverReader).kind,
	// Gemini CLI, Windsurf.
	"httpUrl": func(r *serverReader, path string, n *node) {
		r.url(path, n)
		r.httpURL = true
	},
	"serverUrl": (*serverReader).url,
	// Roo Code, Cline, Claude Desktop and others.
	"disabled": func(r *serverReader, path string, n *node) { r.l.boolean(path, n, &r.disabled) },
	"timeout":  (*serverReader).timeout,
	// VS Code.
	"envFile": (*serverReader).envFile,
	// Gemini CLI, Codex, Roo Code and Kiro.
	"includeTools":   (*serverReader).allow,
	"enabled_tools":  (*serverReader).allow,
	"excludeTools":   func(r *serverReader, path string, n *node) { r.l.globs(path, n, &r.s.Tools.Deny) },
	"disabled_tools": func(r *serverReader, path string, n *node) { r.l.globs(path, n, &r.s.Tools.Deny) },
	"disabledTools":  func(r *serverReader, path string, n *node) { r.l.globs(path, n, &r.s.Tools.Deny) },
	// Codex.
	"http_headers":         (*serverReader).headers,
	"env_http_headers":     (*serverReader).envHeaders,
	"bearer_token_env_var": (*serverReader).bearer,
	"env_vars":             (*serverReader).envVars,
	"startup_timeout_sec": func(r *serverReader, path string, n *node) {
		r.l.duration(path, n, time.Second, false, &r.s.ConnectTimeout)
	},
	"startup_timeout_ms": func(r *serverReader, path string, n *node) {
		r.l.duration(path, n, time.Millisecond, false, &r.s.ConnectTimeout)
	},
	"tool_timeout_sec": func(r *serverReader, path string, n *node) {
		r.l.duration(path, n, time.Second, false, &r.s.CallTimeout)
	},
	// VS Code and others.
	"sandboxEnabled": unprotected(noSandbox),
	"sandbox":        (*serverReader).sandbox,
	// Warp.
	"working_directory": func(r *serverReader, path string, n *node) { r.string(path, n, &r.s.Cwd) },
	// The older systems.
	"exposed_tools": unprotected(`is not built yet; write "tools": {"allow": [...]} in its place`),
	"instructions":  func(r *serverReader, path string, n *node) { r.l.str(path, n, &r.s.Description) },
}

// ignoredKey notes a key that is known and ignored; false if it is not in table.
func (l *loader) ignoredKey(table map[string]ignoredReason, key, place string) bool {
	switch table[key] {
	case ofOtherClient:
		l.otherClients.add(label(key), place)
	case ofOlderSystem:
		l.old.add(label(key), place)
	default:
		return false
	}
	return true
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
	r.string(path, n, &name)
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
