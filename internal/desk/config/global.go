package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"mcpx/internal/base/conf"
)

// root is what the file may have, by the parts of mcpx that it is for.
func (l *loader) root() object {
	return object{name: "config", keys: slices.Concat(l.serverTables(), l.forClients(), l.forCalls(), l.forServers(), l.overHTTP(), l.toLog())}
}

// serverTables are the keys that hold servers: of Claude and Cursor, of VS Code, of the older mcpx.
func (l *loader) serverTables() []key {
	table := func(name, schema string) value {
		return value{read: l.servers, schema: schema, of: func() object { return l.serverReader("").object() }}
	}
	const byName = `{"type": "object", "additionalProperties": {"$ref": "#/$defs/server"}}`
	const byNameOrList = `{"anyOf": [` + byName + `, {"type": "array", "items": {"$ref": "#/$defs/server"}}]}`
	claude := table(claudeServers, byName)
	claude.into = &l.cfg.Servers
	return []key{
		{"$schema", l.str(new(string)), "the JSON Schema of this file, for editors; `mcpx schema` prints it"},
		{claudeServers, claude, "the servers by name. `servers`, as VS Code has them, means the same"},
		{codeServers, table(codeServers, byNameOrList), ""},
		{oldServers, table(oldServers, byNameOrList), ""},
	}
}

// forClients are the keys of what clients and their models are shown.
func (l *loader) forClients() []key {
	c := l.cfg
	return []key{
		{"view", value{into: &c.View, schema: text, read: l.view}.takes(atStart), "what clients get: `two_tools`, `tools`, `servers/NAME` or `groups/NAME` ([other views](#other-views))"},
		{"groups", value{into: &c.Groups, named: true, schema: `{"anyOf": [{"$ref": "#/$defs/group"}, ` + texts + `]}`, read: l.groups, of: func() object { return l.groupObject(&Group{View: ViewTwoTools}) }}, "named parts of the catalogue ([other views](#other-views))"},
		{"catalogue_token_budget", l.count(&c.CatalogueTokenBudget, 1), "the most tokens that the catalogue may cost"},
		{"catalogue_char_limit", l.count(&c.CatalogueCharLimit, 0), "the most UTF-16 units of the description of `inspect`; the catalogue goes on in the description of `exec`. 0 is no limit"},
		{"schema_compression_enabled", l.boolean(&c.SchemaCompression), "schemas as TypeScript, or as minified JSON Schema"},
		{"max_description_len", l.count(&c.MaxDescriptionLen, 0), "where the descriptions of parameters are cut in answers with several tools, in characters; 0 never. A single tool's never are"},
		{"short_argument_names", l.boolean(&c.ShortArgumentNames), "`inspect` and `exec` say that they take `server`, `tool` and `args`, for frameworks that have a `tool_name` of their own (Microsoft Agent Framework, Semantic Kernel); both sets are always accepted"},
		{"read_door", l.boolean(&c.ReadDoor), "a third tool, `exec_read`, calls read-only tools alone ([what allowing exec permits](#what-allowing-exec-permits))"},
		{"apps", l.boolean(&c.Apps), "lists tools with a user interface (MCP Apps) beside the two tools, for clients that show them"},
		{"separator", value{into: &c.Separator, schema: `{"type": "string", "pattern": "^[A-Za-z0-9_-]{1,8}$"}`, read: l.separator}, "what is between server and tool where tools have names of their own"},
		{"prefix", oneOf(l, &c.Prefix, "always", "conflict", "never"), "which of those names have their server in front; with `conflict` those that several servers have"},
		{"compress", l.boolean(&c.Compress), "whether results are compressed where tools have names of their own"},
		{"resources", l.boolean(&c.Resources), "whether clients are shown the resources of the servers"},
		{"prompts", l.boolean(&c.Prompts), "whether clients are shown the prompts of the servers"},
		{"structured_content", l.structured(&c.StructuredContent), "`auto` passes the server's own, but not to clients that show the model it instead of the text, nor, where a text says the same, to those that show both; `always`, for programs, also makes it of JSON in the text, and of `inspect` and errors; `once`, for clients that show the model both, where no text says the same; `never`. [Per client](docs/clients.md). Over HTTP the header `Mcpx-Structured-Content: always` or `never` decides for one request"},
		{"include_structured_content", value{schema: `{"type": "boolean"}`, read: l.includeStructured}, ""},
		{"clients", value{into: &c.Clients, schema: `{"type": "object", "additionalProperties": {"$ref": "#/$defs/client"}}`, read: l.clients, of: func() object { return l.client(&conf.ClientRule{}) }}, "[rules](docs/clients.md#rules-for-clients) by globs of the names that clients give"},
		{"startup_wait", l.wait(&c.StartupWait), "how long the first `tools/list` waits for servers that were never tried; 0 does not wait"},
	}
}

// forCalls are the keys of calls and their results.
func (l *loader) forCalls() []key {
	c := l.cfg
	return []key{
		{"result_token_limit", l.count(&c.ResultTokenLimit, 0), "where a long result is cut, in tokens; 0 never. Before that it is cut to what the client shows a model, see `clients`"},
		{"result_preview_tokens", l.count(&c.ResultPreviewTokens, 0), "how much of such a result is shown at first if it is JSON; 0 as much as the limit allows"},
		{"toon_compression_enabled", l.boolean(&c.ToonCompression), "tables as TOON, or minified JSON only"},
		{"disabled_tools", l.toolGlobs(&c.DisabledTools), "tools that nobody sees or calls: globs of `SERVER.TOOL`"},
		{"confirm", switched(l, &l.everyServer.Confirm, "destructive", "all"), "for the servers that do not say it themselves ([what allowing exec permits](#what-allowing-exec-permits))"},
		{"exec_wait", l.wait(&c.ExecWait), "how long a call waits for a server that is connecting; 0 does not wait"},
	}
}

// forServers are the keys of how servers are started, watched and bounded.
func (l *loader) forServers() []key {
	c, every := l.cfg, &l.everyServer
	return []key{
		{"connect_timeout", l.timeout(&every.ConnectTimeout), "for the servers that do not say it themselves"},
		{"start", oneOf(l, &every.Start, "eager", "lazy"), "for the servers that do not say it themselves"},
		{"stop_idle", l.orOff(&every.StopIdle), "for the servers that do not say it themselves"},
		{"pin", switched(l, &every.Pin, "warn", "block"), "for the servers that do not say it themselves"},
		{"max_concurrency", l.count(&c.MaxConcurrency, 0), "most calls at once, in all; 0 is no limit"},
		{"max_message_bytes", whole(l, &c.MaxMessageBytes, 1024, math.MaxInt64).takes(atStart), "the most bytes of one message, both ways"},
		{"shutdown_grace", l.wait(&c.ShutdownGrace).takes(atStart), "how long open calls may go on at the end; 0 does not wait"},
		{"health_check_enabled", l.boolean(&c.HealthCheck).takes(restarts), "whether servers without calls are asked if they are well"},
		{"health_check_interval", l.timeout(&c.Health.Interval).takes(restarts), "how often"},
		{"health_check_timeout", l.timeout(&c.Health.Timeout).takes(restarts), "how long each has for the answer"},
		{"health_check_failure_threshold", l.count(&c.Health.Threshold, 1).takes(restarts), "how many failures in a row end the session"},
	}
}

// overHTTP are the keys of mcpx over HTTP.
func (l *loader) overHTTP() []key {
	c := l.cfg
	return []key{
		{"auth", value{read: l.auth, schema: `{"anyOf": [{"$ref": "#/$defs/auth"}, {"$ref": "#/$defs/disabled"}]}`, off: "plainOff", of: func() object { return l.authObject(cmp.Or(c.Auth, &Auth{})) }}, "[who may connect](docs/hosting.md#who-may-connect): tokens, authorization servers, certificates; and [what each may do](docs/hosting.md#what-each-may-do)"},
		{"auth_token", value{schema: `{"type": "string"}`, off: "off", read: l.oldAuthToken}, ""},
		{"tls", value{into: &c.TLS, off: "plainOff", read: l.tls, of: func() object { return l.tlsObject(&conf.TLS{}) }}.takes(atStart), "the [certificate](docs/hosting.md#who-may-connect) to serve HTTPS with"},
		{"limits", value{read: l.limits, off: "plainOff", of: l.limitsObject}, "[how much](docs/hosting.md#how-much) each principal, each server and all may use"},
		{"rate_limit_per_minute", value{schema: `{"type": "integer"}`, off: "off", most: math.MaxInt32, read: l.oldRateLimit}, ""},
		{"session_timeout", l.timeout(&c.SessionTimeout).takes(atStart), "how long a client may keep a session without using it"},
		{"sse", l.boolean(&c.SSE).takes(atStart), "the transport of 2024-11-05 (HTTP+SSE) for clients too"},
		{"ui", l.boolean(&c.UI).takes(atStart), "the [status page](docs/hosting.md#the-status-page)"},
		{"api", value{into: new(c.ChangesServers()), derived: true, schema: `{"type": "boolean"}`, read: l.api}.takes(atStart), "whether admins can [change servers](docs/hosting.md#servers-at-run-time); without the key they can if there is `auth`"},
		{"audit", value{into: &c.Audit, off: "off", read: l.audit, of: func() object { return l.auditObject(&Audit{}) }}.takes(atStart), "[a trail](docs/hosting.md#the-audit-trail) of calls and refused requests"},
		{"telemetry", value{into: &c.Telemetry, off: "plainOff", read: l.telemetry, of: l.telemetryObject}.takes(atStart), "[metrics](docs/hosting.md#state-and-metrics) and [traces](docs/hosting.md#traces)"},
	}
}

// toLog are the keys of the log.
func (l *loader) toLog() []key {
	c := l.cfg
	return []key{
		{"log_level", value{into: &c.LogLevel, schema: levelSchema, read: l.logLevel}.takes(atStart), "`debug`, `info`, `warn` or `error`; to stderr, as stdout is the protocol"},
		{"log_format", oneOf(l, &c.LogFormat, "text", "json").takes(atStart), "lines of text or of JSON"},
		{"log_file", l.path(&c.LogFile).takes(atStart), "the log in a file too, for clients that show nobody stderr; renamed at 10 MB"},
	}
}

// The keys that hold servers: of Claude and Cursor, of VS Code, of the older mcpx.
const (
	claudeServers = "mcpServers"
	codeServers   = "servers"
	oldServers    = "mcp_servers"
)

func (l *loader) readRoot(n *node) {
	if n.kind != objectKind {
		l.fault("the file", n.offset, "must hold an object, not %s", n.kind)
		return
	}
	l.duplicates("", n)
	root := l.root()
	settings := editorServers(n)
	if settings != nil { // whose other keys are none of ours, however near they are
		root.keys = append(root.keys, key{name: settings.key, value: value{read: func(path string, _ *node) {
			l.servers(strings.TrimSuffix(path+"."+settings.inner, "."), settings.servers)
		}}})
	}
	l.forAllServers(n)
	l.members("", n, root, func(at string, m member) bool {
		if settings != nil {
			l.otherClients.add(label(m.key), "")
			return true
		}
		if l.proxies(at, m) {
			return true
		}
		if looksLikeServer(m.value) {
			l.fault(at, m.offset, "looks like a server; servers belong in %q", claudeServers)
			return true
		}
		return l.ignoredKey(rootOfOtherClients, rootOfOlderSystems, m.key, "")
	})
	// A file with other faults says enough; one that is only empty of servers is
	// most likely the wrong file.
	if !l.someServers && len(l.faults) == 0 {
		l.fault(claudeServers, n.offset, "is missing; it holds the servers by name, as in the file of an MCP client (mcpx init --from FILE reads the file of any client)")
	}
}

// forAllServers reads what the root says for all servers, before the servers that take it over.
// Faults there are noted when the key's turn comes.
func (l *loader) forAllServers(n *node) {
	said := slices.DeleteFunc(slices.Clone(n.members), func(m member) bool {
		return m.value.kind == nullKind || !slices.Contains([]string{"confirm", "pin", "connect_timeout", "start", "stop_idle", "limits"}, m.key)
	})
	if len(said) == 0 {
		return
	}
	first := newLoader(l.cfg.Path, l.o)
	root := first.root()
	for _, m := range said {
		root.key(m.key).read(m.key, m.value)
	}
	l.everyServer = first.everyServer
}

func looksLikeServer(n *node) bool {
	return slices.ContainsFunc(n.members, func(m member) bool {
		return (m.key == "command" || m.key == "url") && m.value.kind == stringKind
	})
}

// api reads whether servers may be changed over HTTP; without the key it depends on auth.
func (l *loader) api(path string, n *node) {
	l.cfg.API = new(bool)
	l.boolean(l.cfg.API).read(path, n)
}

// structured reads auto, always, once or never.
func (l *loader) structured(into *conf.StructuredPolicy) value {
	return oneOf(l, into, "auto", "always", "once", "never")
}

func (l *loader) includeStructured(path string, n *node) {
	if l.boolean(new(bool)).read(path, n); n.kind == boolKind {
		l.cfg.StructuredContent = map[string]conf.StructuredPolicy{"true": "always", "false": "never"}[n.text]
	}
}

func (l *loader) clients(path string, n *node) {
	if !l.is(objectKind, path, n) {
		return
	}
	for _, m := range n.members {
		at := join(path, m.key)
		if !l.glob(at, m.offset, m.key) || !l.is(objectKind, at, m.value) {
			continue
		}
		rule := conf.ClientRule{Name: m.key}
		l.members(at, m.value, l.client(&rule), nil)
		l.cfg.Clients = append(l.cfg.Clients, rule)
	}
}

// client is a rule for clients.
func (l *loader) client(rule *conf.ClientRule) object {
	wait := l.wait(&rule.CallWait)
	return object{name: "client", keys: []key{
		{"structured_content", l.structured(&rule.Structured), "`auto`: the server's own, as far as the table says nothing else. `once`: where no text says the same. `never`: not at all, what only it says becomes a text. `always`: also made of JSON in the text, on `inspect` and errors too; for programs"},
		{"text", oneOf(l, &rule.Text, "auto", "json"), "`json`: no TOON, for programs that read the texts"},
		{"result_chars", l.limit(&rule.ResultChars, 1000), "how much of a result the client shows before it cuts by itself, in bytes; then mcpx cuts before it, and the rest is one `read_result` away. 0 is no limit"},
		{"description_chars", l.limit(&rule.DescriptionChars, 1), "the same of a description, in UTF-16 units"},
		{"call_wait", value{schema: duration, read: func(path string, n *node) {
			wait.read(path, n)
			rule.CallWait = cmp.Or(rule.CallWait, maxDuration)
		}}, "after how long the client gives a call up"},
	}}
}

// limit reads a limit of a rule, at least least; 0 is no limit, as of the others.
func (l *loader) limit(into *int, least int) value {
	limit := 0
	v := l.count(&limit, 0).then(func(path string, n *node) {
		if limit > 0 && limit < least {
			l.fault(path, n.offset, "must be at least %d, or 0 for no limit", least)
		}
		*into = cmp.Or(limit, NoLimit)
	})
	v.schema = fmt.Sprintf(`{"anyOf": [{"const": 0}, {"type": "integer", "minimum": %d, "maximum": %d}]}`, least, NoLimit)
	v.into, v.derived, v.most = into, true, 0
	return v
}

// levelSchema names the levels as they are written mostly, and accepts them in any case.
const levelSchema = `{"anyOf": [{"enum": ["debug", "info", "warn", "error"]},
	{"type": "string", "pattern": "^([dD][eE][bB][uU][gG]|[iI][nN][fF][oO]|[wW][aA][rR][nN]|[eE][rR][rR][oO][rR])$"}]}`

// logLevel reads a level; the case of its letters does not matter.
func (l *loader) logLevel(path string, n *node) {
	level := *n
	level.text = strings.ToLower(n.text)
	oneOf(l, &l.cfg.LogLevel, "debug", "info", "warn", "error").read(path, &level)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
