package config

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/pattern"
)

// Reserved is the name of the server that is built into mcpx. No server of the file may have this name.
const Reserved = "mcpx"

const maxNameLen = 64

// scalars is the JSON Schema of an object whose values are strings. Users may also write numbers or booleans.
const scalars = `{"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}}`

var serverName = pattern.New(`^[A-Za-z0-9._-]+$`)

// ValidName reports whether a server can be served under this name: it is not too long, has only the characters that names of servers
// may have, is not [Reserved], and is not "." or "..".
func ValidName(name string) bool {
	return serverName.MatchString(name) && !onlyDots(name) && len(name) <= maxNameLen && !strings.EqualFold(name, Reserved)
}

// onlyDots reports whether a name is "." or "..", which browsers and web servers remove from URLs.
func onlyDots(name string) bool { return name == "." || name == ".." }

func (r *serverReader) object() object {
	return object{name: "server", keys: append(r.ownKeys(), r.otherClientKeys()...)}
}

// ownKeys returns the keys of a server that mcpx defines: how it is reached, what clients see of it, and when it runs.
func (r *serverReader) ownKeys() []key {
	l, s := r.l, &r.s
	return []key{
		{"type", value{read: r.kind, schema: kindSchema}, "without it, it follows from `command` or `url`"},
		{"command", value{read: r.command, schema: `{"anyOf": [` + text + `, ` + texts + `, {"$ref": "#/$defs/zedCommand"}]}`, describe: r.zedCommand}, "the program of a local server"},
		{"args", value{read: r.args, schema: texts}, "its arguments"},
		{"env", value{read: r.env, schema: scalars}, "variables that are added to its small environment"},
		{"cwd", value{read: r.cwd, schema: text}, "the folder that it starts in; `~/` begins at your home"},
		{"framing", oneOf(l, &s.Framing, "auto", "newline", "content-length"), "how its messages are separated"},
		{"url", value{read: r.url, schema: text}, "the address of a remote server"},
		{"urls", value{read: r.urls, schema: texts}, "in place of `url`: several instances of the server ([Instances](docs/configuration.md#instances))"},
		{"headers", value{read: r.headers, schema: scalars}, "headers of the requests to a remote server"},
		{"oauth", value{read: r.oauth, schema: `{"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/oauth"}]}`, describe: func() object { return r.oauthObject(new(true)) }}, "how mcpx [logs in](docs/configuration.md#logging-in) to a remote server; false turns that off"},
		{"credentials", value{read: r.credentials, named: true, schema: text, off: "off"}, "headers whose values come from each caller: `header:NAME`, `claim:NAME`, `exchange` ([Credentials of callers](docs/configuration.md#credentials-of-callers))"},
		{"protocol", oneOf(l, &s.Protocol, "auto", "legacy", "modern"), "the era of the protocol: `legacy` (`initialize`) or `modern` (2026-07-28). `auto` tries both: first the one that the server spoke last, or that the client speaks over stdio, else `modern`. A server that speaks both, and whose tools fail with \"no back-channel\" behind HTTP, needs `legacy`"},

		{"enabled", l.boolean(&s.Enabled), "false keeps the entry and does not use the server"},
		{"description", l.str(&s.Description), "the description that the model reads, in place of the server's own"},
		{"tools", value{read: r.tools, schema: `{"anyOf": [` + someTexts + `, {"$ref": "#/$defs/tools"}]}`, describe: r.toolsObject}, "which tools exist: `{\"allow\": [glob], \"deny\": [glob]}`; `deny` wins"},
		{"read_only", l.boolean(&s.ReadOnly), "hides all tools that do not declare themselves read-only"},
		{"confirm", switched(l, &s.Confirm, "destructive", "all"), "which calls the user must confirm; the default is `confirm` of the file"},
		{"pin", switched(l, &s.Pin, "warn", "block"), "`warn` logs tools whose definition has changed since `mcpx lock`, or since the last start; `block` hides all that were not approved; the default is `pin` of the file"},
		{"overrides", value{read: r.overrides, named: true, describe: func() object { return r.override(&conf.Override{}) }}, "`{\"GLOB\": {\"description\", \"annotations\", \"name\", \"arguments\"}}` repairs the definitions of tools, before the filters apply"},
		{"validate", oneOf(l, &s.Validate, "strict", "off"), "`off` does not check arguments against the schema of the tool"},
		{"verbatim", l.globs(&s.Verbatim), "globs of tools whose results are not changed; the default is `read_*file*`, `*file_content*` and `*_show`. A result is also left as it is if an argument of the call ends in `.py`, `.json`, `.jsonc`, `.ipynb`, `.geojson` or `.lock`"},

		{"connect_timeout", l.timeout(&s.ConnectTimeout), "for the handshake, and as long again for the list of tools; the default is `connect_timeout` of the file, else 30 s. Without either, a command that installs what it runs (`npx`, `uvx`, `docker run`, …) has 10 minutes while it is at work"},
		{"call_timeout", l.timeout(&s.CallTimeout), "for one call"},
		{"tool_timeouts", value{read: r.toolTimeouts, named: true, schema: moreThanZero}, "the same for single tools: `{\"GLOB\": duration}`"},
		{"idle_timeout", l.wait(&s.IdleTimeout), "ends a call that has made no progress for so long; 0 is no limit"},
		{"start", oneOf(l, &s.Start, "eager", "lazy"), "`lazy` starts the server with its first call, or when a model asks about its tools, once its catalogue is on disk"},
		{"stop_idle", l.orOff(&s.StopIdle), "stops the server if it was not used for so long; `inspect` then shows it as `idle`. 0 and `off`: never"},
		{"max_concurrency", l.count(&s.MaxConcurrency, 0), "most calls at once; 0 is no limit"},
		{"session", oneOf(l, &s.Session, "shared", "per_client", "per_principal"), "`per_client` gives each client a session of its own (in the modern era over HTTP: each principal and client name; without a principal, each connection), `per_principal` one to all clients of a principal (without a principal it is `per_client`). One of them is needed over HTTP with several clients for servers that ask the user, use working folders (roots), or remember who they speak to"},
		{"share", oneOf(l, &s.Share, "session", "folder", "user"), "over stdio, which sessions share a process of it: `session` none, `folder` those in the same working folder, `user` all. Without it, mcpx knows some packages that keep nothing between calls, and remote servers are `user`; all else is `session`. `mcpx check` shows it ([Sharing](docs/configuration.md#sharing))"},
		{"session_idle", l.timeout(&s.SessionIdle), "when such a session ends without being used"},
	}
}

// serverReader has the state of reading one server, or a string outside of servers.
type serverReader struct {
	l      *loader
	s      Server
	faults []Fault // of this server only
	// secrets are values that must not appear in logs and messages. The map's value is true for credentials.
	secrets  map[string]bool
	wanted   []wanted
	disabled bool
	// These are the nodes of the values of some keys, such as command. A node is nil if the server does not have the key, and
	// may be nil if the value is a boolean, empty or invalid.
	commandAt, urlAt, urlsAt, oauthAt, credentialsAt *node
	unknownType                                      *node // the value of the key type if kinds does not have it, else nil
	httpURL                                          bool  // the URL is the value of a key that means streamable HTTP
	commandArgs                                      []string
	per                                              string // the value of oauth.per
	// fileEnv has the names and values of variables from envFile and env_vars. If a name occurs several times, the last value is
	// used. Variables in the key env take precedence.
	fileEnv [][2]string
}

func (l *loader) serverReader() *serverReader {
	return &serverReader{l: l, s: l.everyServer, secrets: map[string]bool{}}
}

// fail adds a fault to r.faults. In a server, it makes only this server unavailable.
func (r *serverReader) fail(n *node, format string, args ...any) {
	r.faults = append(r.faults, faultAt(n, format, args...))
}

// servers reads the value of a key that contains servers: an object with the servers by name, or, under some keys, an array of
// servers that contain their names.
func (l *loader) servers(n *node) {
	l.someServers = true
	switch {
	case n.kind == objectKind:
		for _, m := range n.members {
			l.server(m.key, m)
		}
	case n.kind == arrayKind && (n.key == codeServers || n.key == oldServers):
		l.serverList(n)
	case n.key == oldServers:
		l.fault(n, "must be an array or an object of servers, not %s", n.kind)
	default:
		l.expectKind(objectKind, n)
	}
}

func (l *loader) server(name string, n *node) {
	if !l.expectKind(objectKind, n) {
		return
	}
	r := l.serverReader()
	r.s.Name = name
	r.read(n)
	if r.isSelf() {
		l.warn("%s: is mcpx itself, skipped", n.path())
		return
	}
	switch before, twice := l.defined[name]; {
	case !twice:
		l.serverName(name, n)
	case before != n.path(): // if the paths are equal, an object has the key twice, which already is a fault
		l.fault(n, "%s is defined already, by %s", quote(name), before)
	}
	r.finish(n)
	l.cfg.Servers = append(l.cfg.Servers, r.s)
}

func (l *loader) serverName(name string, n *node) {
	if name == "" {
		l.fault(n, "needs a name")
		return
	}
	l.defined[name] = n.path()
	switch {
	case strings.EqualFold(name, Reserved):
		l.fault(n, "the name %q is reserved", Reserved)
	case utf8.RuneCountInString(name) > maxNameLen:
		l.fault(n, "the name must not be longer than %d characters", maxNameLen)
	}
}

// read reads a server. It reads the keys of other clients first, so that the keys of mcpx replace their values.
func (r *serverReader) read(n *node) {
	own, others := object{keys: r.ownKeys()}, object{}
	if slices.ContainsFunc(n.members, func(m *node) bool { return own.key(m.key) == nil }) {
		others.keys = r.otherClientKeys()
	}
	for _, m := range n.members {
		if k := others.key(m.key); k != nil && m.kind != nullKind {
			k.read(m)
		}
	}
	r.l.members(n, own, func(m *node) bool {
		named := nameInList(m.key) && n.parent.kind == arrayKind
		if named || isComment(m.key) || others.key(m.key) != nil ||
			r.l.ignoredKey(serverOfOtherClients, serverOfOlderSystems, m.key, n.path()) {
			return true
		}
		near := nearest(m.key, restricting)
		if near == "" || nearest(m.key, own.names()) != "" { // then members suggests one of mcpx's own keys
			return false
		}
		r.l.fault(m, "unknown key %s, did you mean %q?", quote(m.key), near)
		return true
	})
}

// string reads a string and expands the references in it.
func (r *serverReader) string(into *string) value {
	return value{schema: text, read: func(n *node) {
		if r.l.expectKind(stringKind, n) {
			*into = r.expand(n)
		}
	}}
}

// cwd reads the working folder. Unlike other paths in the config, a relative one begins in the folder in which mcpx was started.
func (r *serverReader) cwd(n *node) {
	if !r.l.expectKind(stringKind, n) {
		return
	}
	folder, reason := r.inHome(r.expand(n))
	if reason != "" {
		r.fail(n, "%s", reason)
	}
	r.s.Cwd = folder
}

func (r *serverReader) command(n *node) {
	r.commandAt = n
	switch n.kind {
	case objectKind:
		r.l.members(n, r.zedCommand(), nil)
	case arrayKind:
		r.commandList(n)
	default:
		r.string(&r.s.Command).read(n)
	}
}

func (r *serverReader) args(n *node) {
	args, ok := r.l.strings(n)
	if !ok {
		return
	}
	for i := range args {
		args[i] = r.expand(n.items[i])
	}
	r.s.Args = args
	r.argSecrets(args)
}

// pairs returns the members of an object whose values must be strings. It leaves out members that are null. A number or
// boolean is accepted as a string, because users write ports as numbers.
func (r *serverReader) pairs(n *node) (pairs []*node) {
	if !r.l.expectKind(objectKind, n) {
		return nil
	}
	for _, m := range n.members {
		switch m.kind {
		case nullKind:
		case stringKind, numberKind, boolKind:
			pairs = append(pairs, m)
		default:
			r.l.expectKind(stringKind, m)
		}
	}
	return pairs
}

func (r *serverReader) env(n *node) {
	r.s.Env = map[string]string{}
	for _, m := range r.pairs(n) {
		if m.key == "" || strings.ContainsAny(m.key, "=\x00") {
			r.fail(m, "is not the name of an environment variable")
			continue
		}
		r.s.Env[m.key] = r.expand(m)
		r.secretIfNamed(m.key, r.s.Env[m.key])
	}
}

func (r *serverReader) headers(n *node) {
	for _, m := range r.pairs(n) {
		value := r.expand(m)
		if value != m.text {
			r.secret(value, true)
		}
		r.header(m, m.key, value)
	}
}

// header sets a header. It replaces a header whose name differs only in upper and lower case.
func (r *serverReader) header(n *node, name, value string) {
	value = strings.TrimSpace(value)
	switch {
	case !headerKey.MatchString(name):
		r.fail(n, "is not the name of a header")
		return
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		r.fail(n, "must not contain line breaks or control characters")
		return
	}
	r.secretIfNamed(name, value)
	if r.s.Headers == nil {
		r.s.Headers = map[string]string{}
	}
	for other := range r.s.Headers {
		if strings.EqualFold(other, name) {
			delete(r.s.Headers, other)
		}
	}
	r.s.Headers[name] = value
}

func (r *serverReader) url(n *node) {
	r.string(&r.s.URL).read(n)
	r.urlSecrets(r.s.URL)
	r.urlAt, r.httpURL = n, false
}

// tools reads the key tools: an object with allow and deny, or, as in files of Copilot, an array of the allowed tools.
func (r *serverReader) tools(n *node) {
	if n.kind == arrayKind {
		r.allow().read(n)
		return
	}
	if r.l.expectKind(objectKind, n) {
		r.l.members(n, r.toolsObject(), nil)
	}
}

func (r *serverReader) toolsObject() object {
	return object{name: "tools", keys: []key{
		{"allow", r.allow(), "the only tools that exist"},
		{"deny", r.deny(), "tools that do not exist"},
	}}
}

func (r *serverReader) allow() value { return r.l.allowed(r.l.globs(&r.s.Tools.Allow)) }

func (r *serverReader) deny() value { return r.l.globs(&r.s.Tools.Deny) }

func (r *serverReader) toolTimeouts(n *node) {
	r.s.ToolTimeouts = nil
	for m := range r.l.named(n) {
		if !r.l.glob(m, m.key) {
			continue
		}
		one := conf.ToolTimeout{Glob: m.key}
		r.l.timeout(&one.Timeout).read(m)
		r.s.ToolTimeouts = append(r.s.ToolTimeouts, one)
	}
}

// finish is called after all keys of the server are read. It does the work that concerns several keys: it adds variables from env
// files, determines the type, checks for missing keys, and sets Secrets, Credentials and Fault.
func (r *serverReader) finish(n *node) {
	if len(r.fileEnv) > 0 && r.s.Env == nil {
		r.s.Env = map[string]string{}
	}
	for i := len(r.fileEnv) - 1; i >= 0; i-- {
		if _, set := r.s.Env[r.fileEnv[i][0]]; !set {
			r.s.Env[r.fileEnv[i][0]] = r.fileEnv[i][1]
		}
	}
	r.infer(n)
	r.splitCommand()
	r.s.Args = append(r.commandArgs, r.s.Args...)
	r.needPackage()
	r.checkInstances()
	r.checkOAuth()
	r.checkCredentials()
	r.s.Enabled = r.s.Enabled && !r.disabled
	r.s.Secrets = sortedKeys(r.secrets)
	slices.SortStableFunc(r.s.Secrets, func(a, b string) int { return len(b) - len(a) })
	for _, value := range r.s.Secrets {
		if r.secrets[value] {
			r.s.Credentials = append(r.s.Credentials, value)
		}
	}
	if !r.s.Enabled {
		return
	}
	if len(r.wanted) > 0 {
		r.l.wanted[r.s.Name] = r.wanted
	}
	if r.s.OAuth.PerPrincipal {
		r.l.perPrincipal[r.s.Name] = r.oauthAt.child("per")
	}
	r.s.setFaults(r.faults)
}

// setFaults replaces the faults of an enabled server, and with them the text in Fault.
func (s *Server) setFaults(faults []Fault) {
	sortFaults(faults)
	texts := make([]string, len(faults))
	for i, f := range faults {
		texts[i] = f.String()
	}
	s.faults, s.Fault = faults, strings.Join(texts, "; ")
}
