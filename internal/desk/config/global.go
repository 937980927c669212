package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/url"
	"path"
	"slices"
	"strings"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/netguard"
	"mcpx/internal/base/pattern"
)

// root describes the whole file: an object with all root keys.
func (l *loader) root() object {
	return object{name: "config", keys: slices.Concat(l.serverTables(), l.forClients(), l.forCalls(), l.forServers(), l.overHTTP(), l.toLog(), l.ofMCPProxy(), l.missingProtections())}
}

// serverTables returns the key $schema, and those root keys of the file that contain servers.
func (l *loader) serverTables() []key {
	table := func(name, schema string) value {
		return value{read: l.servers, schema: schema, describe: func() object { return l.serverReader().object() }}
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

func (l *loader) forClients() []key {
	c := l.cfg
	return []key{
		{"view", value{into: &c.View, schema: text, read: l.view}.takes(atStart), "what clients get: `two_tools`, `tools`, `servers/NAME` or `groups/NAME` ([other views](docs/using.md#other-views))"},
		{"groups", value{into: &c.Groups, named: true, schema: `{"anyOf": [{"$ref": "#/$defs/group"}, ` + texts + `]}`, read: l.groups, describe: func() object { return l.groupObject(&Group{View: ViewTwoTools}) }}, "named parts of the catalogue ([other views](docs/using.md#other-views))"},
		{"catalogue_token_budget", l.count(&c.CatalogueTokenBudget, 1), "the most tokens that the catalogue may cost"},
		{"catalogue_char_limit", l.count(&c.CatalogueCharLimit, 0), "the longest description of `inspect`, in UTF-16 units; the catalogue continues in the description of `exec`, whose own text (about 450) is never cut. 0 is no limit"},
		{"schema_compression_enabled", l.boolean(&c.SchemaCompression), "schemas as TypeScript, or as minified JSON Schema"},
		{"max_description_len", l.count(&c.MaxDescriptionLen, 0), "where the descriptions of parameters are cut in answers with several tools, in characters; 0 is no limit. An answer with a single tool has them whole"},
		{"short_argument_names", l.boolean(&c.ShortArgumentNames), "`inspect` and `exec` say that they take `server`, `tool` and `args`, for frameworks that have a `tool_name` of their own (Microsoft Agent Framework, Semantic Kernel); both sets are always accepted"},
		{"read_door", l.boolean(&c.ReadDoor), "a third tool, `exec_read`, calls read-only tools alone ([what allowing exec permits](docs/using.md#what-allowing-exec-permits))"},
		{"apps", l.boolean(&c.Apps), "lists tools with a user interface (MCP Apps) beside the two tools, for clients that show them"},
		{"separator", value{into: &c.Separator, schema: `{"type": "string", "pattern": "^[A-Za-z0-9_-]{1,8}$"}`, read: l.separator}, "the text between server and tool in the names of tools, in views that list the tools"},
		{"prefix", oneOf(l, &c.Prefix, "always", "conflict", "never"), "whether those names begin with the server; `conflict`: only names that several servers have"},
		{"compress", l.boolean(&c.Compress), "whether results are compressed in those views"},
		{"resources", l.boolean(&c.Resources), "whether clients are shown the resources of the servers"},
		{"prompts", l.boolean(&c.Prompts), "whether clients are shown the prompts of the servers"},
		{"structured_content", l.structured(&c.StructuredContent), "`auto`: passed on as the server sent it, except to clients that show it to the model in place of the text, or, where a text says the same, beside it. `always`, for programs: also made from JSON in a text, for `inspect` and errors too. `once`, for clients that show the model both: only where no text says the same. `never`. [Per client](docs/clients.md). Over HTTP the header `Mcpx-Structured-Content: always` or `never` decides for one request"},
		{"include_structured_content", value{schema: `{"type": "boolean"}`, read: l.includeStructured}, ""},
		{"clients", value{into: &c.Clients, schema: `{"type": "object", "additionalProperties": {"$ref": "#/$defs/client"}}`, read: l.clients, describe: func() object { return l.client(&conf.ClientRule{}) }}, "[rules](docs/clients.md#rules-for-clients) by globs of the names that clients give"},
		{"startup_wait", l.wait(&c.StartupWait), "how long the first `tools/list` waits for servers that were never tried; 0 does not wait"},
	}
}

func (l *loader) forCalls() []key {
	c := l.cfg
	return []key{
		{"result_token_limit", l.count(&c.ResultTokenLimit, 0), "where a long result is cut, in tokens; 0 is no limit. It may be cut earlier to what the client shows a model, see `clients`"},
		{"result_preview_tokens", l.count(&c.ResultPreviewTokens, 0), "how much of a cut result is shown at first, in tokens; 0 is as much from its beginning as the limit allows"},
		{"toon_compression_enabled", l.boolean(&c.ToonCompression), "whether results may become TOON or JavaScript; else JSON is only minified"},
		{"result_forms", l.forms(&c.ResultForms), "the forms that JSON in results may have, of `json`, `toon` and `js` (JavaScript that evaluates to the JSON); the shortest is used, and JSON is always allowed. The default is all of them"},
		{"disabled_tools", l.toolGlobs(&c.DisabledTools), "tools that no client sees or calls: globs of `SERVER.TOOL`"},
		{"confirm", switched(l, &c.Confirm, "destructive", "all").andThen(func(*node) { l.everyServer.Confirm = c.Confirm }), "the default for servers, and which calls of the server `mcpx` itself the user must confirm ([what allowing exec permits](docs/using.md#what-allowing-exec-permits))"},
		{"learn", value{into: new(c.Learns()), derived: true, schema: `{"type": "boolean"}`, read: l.learn}, "for tools that do not declare what they return, `inspect` shows what they did return: keys and types, never a value, and no key that was in one result alone. The default is true, without `auth`; with it, what was learned is shown to principals with the same rights"},
		{"programs", value{into: &c.Programs, off: "plainOff", schema: `{"anyOf": [{"const": true}, {"$ref": "#/$defs/programs"}]}`, read: l.programs, describe: func() object { return l.programsObject(&c.Programs) }}, "[programs](docs/programs.md) in JavaScript that call tools: `false` turns them off"},
		{"dial", optional(l, &c.Dial, conf.Dial{}, l.dialObject, l.checkDial), "who may [dial in](docs/dial.md) over HTTP with servers of their own"},
		{"files", l.folders(&c.Files), "folders whose files a model may pass to a tool with `{\"$file\": PATH}`, and in which it may save results as new files ([more](docs/files.md)). Over stdio the client's roots are open too. With `auth` no files are"},
		{"exec_wait", l.wait(&c.ExecWait).andThen(func(*node) { c.ExecWaitSet = true }), "how long a call waits for a server that is connecting; 0 does not wait. Without the key, a call waits until its deadline while the command of the server installs or starts"},
	}
}

// formWords are the words of the file for the result forms. A result form is a language in which mcpx may write results. The word
// at index i stands for the bit 1<<i of [conf.ResultForms].
var formWords = []string{"json", "toon", "js"}

// forms reads an array of formWords as a set of result forms. The set always includes JSON.
func (l *loader) forms(into *conf.ResultForms) value {
	return value{into: into, derived: true, schema: `{"type": "array", "items": {"type": "string", "enum": ["json", "toon", "js"]}}`, read: func(n *node) {
		list, ok := l.strings(n)
		if !ok {
			return
		}
		*into = conf.FormJSON
		for i, word := range list {
			if at := slices.Index(formWords, word); at >= 0 {
				*into |= 1 << at
			} else {
				l.notOneOf(n.items[i], formWords)
			}
		}
	}}
}

// minMemory is the smallest accepted value of the key memory, in bytes. It is enough for mcpx with a few servers.
const minMemory = 64e6

func (l *loader) forServers() []key {
	c, every := l.cfg, &l.everyServer
	memory := l.size(&c.Memory, minMemory)
	memory.derived = true
	return []key{
		{"connect_timeout", l.timeout(&every.ConnectTimeout), "the default for servers"},
		{"start", oneOf(l, &every.Start, "eager", "lazy"), "the default for servers"},
		{"stop_idle", l.orOff(&every.StopIdle), "the default for servers"},
		{"pin", switched(l, &every.Pin, "warn", "block"), "the default for servers"},
		{"registry", value{into: &c.Registry, schema: `{"type": "string", "pattern": "^https?://"}`, read: l.registry}, "the MCP registry in which `mcpx find` and `mcpx add NAME` look for servers"},
		{"max_concurrency", l.count(&c.MaxConcurrency, 0), "most calls at once, in all; 0 is no limit"},
		{"max_message_bytes", whole(l, &c.MaxMessageBytes, 1024, math.MaxInt64).takes(atStart), "the largest message, in bytes, in both directions"},
		{"memory", memory.takes(atStart), "a soft limit for the memory of mcpx, without that of its servers, such as `\"400MB\"`: near it, mcpx collects garbage more often. A filter (`select`) may use an eighth of it, at least 64 and at most 256 MiB. Kept results take at most a quarter of it, and 128 MiB; so do notifications that clients have not read. The default is 0.8 of the container's limit; without one there is none"},
		{"drain", l.wait(&c.Drain).takes(atStart), "over HTTP, how long mcpx goes on serving after TERM while `/readyz` is already 503, so that load balancers notice; `shutdown_grace` begins after it"},
		{"shutdown_grace", l.wait(&c.ShutdownGrace).takes(atStart), "how long mcpx may take to end. Open calls may go on for a second less, as its servers end in that second; if a client over stdio has closed its side, for 0.9 s at most. 0 does not wait"},
		{"daemon", l.boolean(&c.Daemon).takes(atStart), "whether sessions over stdio, and `mcpx exec`, share [one daemon](docs/daemon.md)"},
		{"daemon_idle", l.timeout(&c.DaemonIdle).takes(atStart), "how long the daemon lives without a session"},
		{"health_check_enabled", l.boolean(&c.HealthCheck).takes(restarts), "whether servers are pinged while they have no calls"},
		{"health_check_interval", l.timeout(&c.Health.Interval).takes(restarts), "the time between two checks"},
		{"health_check_timeout", l.timeout(&c.Health.Timeout).takes(restarts), "how long a check waits for the answer"},
		{"health_check_failure_threshold", l.count(&c.Health.Threshold, 1).takes(restarts), "how many failures in a row end the session"},
	}
}

func (l *loader) overHTTP() []key {
	c := l.cfg
	return []key{
		{"auth", value{read: l.auth, schema: `{"anyOf": [{"$ref": "#/$defs/auth"}, {"$ref": "#/$defs/disabled"}]}`, off: "plainOff", describe: func() object { return l.authObject(cmp.Or(c.Auth, &Auth{})) }}, "[who may connect](docs/hosting.md#who-may-connect): tokens, authorization servers, certificates; and [what each may do](docs/rights.md#what-each-may-do)"},
		{"auth_token", value{schema: `{"type": "string"}`, off: "off", read: l.oldAuthToken}, ""},
		{"tls", value{into: &c.TLS, read: l.tls, schema: `{"anyOf": [{"$ref": "#/$defs/tls"}, {"$ref": "#/$defs/disabled"}]}`, off: "plainOff", describe: func() object { return l.tlsObject(&conf.TLS{}) }}.takes(atStart), "the [certificate](docs/hosting.md#who-may-connect) to serve HTTPS with"},
		{"limits", value{read: l.limits, off: "plainOff", describe: l.limitsObject}, "[how much](docs/rights.md#how-much) each principal, each server and all may use"},
		{"rate_limit_per_minute", value{schema: `{"type": "integer"}`, off: "off", maximum: math.MaxInt32, read: l.oldRateLimit}, ""},
		{"session_timeout", l.timeout(&c.SessionTimeout).takes(atStart), "how long mcpx holds what belongs to an unused session; the client can go on for 7 days"},
		{"http_path", value{into: &c.HTTPPath, schema: `{"type": "string", "pattern": "^(/[A-Za-z0-9._~-]+)+$"}`, read: l.httpPath}.takes(atStart), "the path of the endpoint; the views are below it. `auth.resource` ends in it, unless a proxy changes the path"},
		{"sse", l.boolean(&c.SSE).takes(atStart), "serves clients over the transport of 2024-11-05 (HTTP+SSE) too"},
		{"ui", value{into: &c.UI, read: l.ui, describe: l.uiObject, schema: `{"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/ui"}]}`}.takes(atStart), "the [page](docs/operating.md#the-status-page) in a browser, which is there without the key. `{\"calls\": \"full\"}` makes it show the arguments and results of recent calls as well, to everybody who may see it"},
		{"api", value{into: new(c.ChangesServers()), derived: true, schema: `{"type": "boolean"}`, read: l.api}.takes(atStart), "whether admins can [change servers](docs/operating.md#servers-at-run-time); without the key they can if there is `auth`"},
		{"audit", optional(l, &c.Audit, Audit{}, l.auditObject, l.checkAudit).takes(atStart), "[a trail](docs/audit.md#the-audit-trail) of calls and refused requests"},
		{"cluster", optional(l, &c.Cluster, conf.Cluster{Bucket: "mcpx"}, l.clusterObject, l.checkCluster).takes(atStart), "[several replicas](docs/replicas.md) as one endpoint, over NATS"},
		{"telemetry", value{into: &c.Telemetry, off: "plainOff", read: l.telemetry, describe: l.telemetryObject}.takes(atStart), "[metrics](docs/operating.md#state-and-metrics) and [traces](docs/operating.md#traces)"},
	}
}

func (l *loader) toLog() []key {
	c := l.cfg
	return []key{
		{"log_level", value{into: &c.LogLevel, schema: levelSchema, read: l.logLevel}.takes(atStart), "`debug`, `info`, `warn` or `error`; to stderr, as stdout is the protocol"},
		{"log_format", oneOf(l, &c.LogFormat, "text", "json").takes(atStart), "the form of the lines"},
		{"log_file", l.path(&c.LogFile).takes(atStart), "writes the log to a file too, for clients that hide stderr; renamed at 10 MB"},
	}
}

var (
	pathForm = pattern.New(`^(/[A-Za-z0-9._~-]+)+$`)
	// servedPaths are the first parts of the paths that mcpx itself serves. http_path must not begin with one of them.
	servedPaths = []string{
		".well-known", "api", "connect", "dial", "healthz", "mcp_endpoint", "messages", "metrics", "oauth", "readyz", "register", "sse",
		"status", "ui",
	}
)

func (l *loader) httpPath(n *node) {
	if !l.expectKind(stringKind, n) {
		return
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(n.text, "/"), "/")
	switch {
	case !pathForm.MatchString(n.text) || path.Clean(n.text) != n.text:
		l.fault(n, `must be a path such as "/mcp", of letters, digits, '.', '_', '~' and '-'`)
	case slices.Contains(servedPaths, first):
		l.fault(n, "mcpx serves something else at /%s; choose another path, such as %s", first, defaultHTTPPath)
	default:
		l.cfg.HTTPPath = n.text
	}
}

// registry reads the URL of an MCP registry. It must be https or on this machine, because mcpx runs the commands that a registry
// lists.
func (l *loader) registry(n *node) {
	u, err := url.Parse(n.text)
	if l.expectKind(stringKind, n) && (err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !netguard.Safe(n.text)) {
		l.fault(n, "must be an https:// URL, such as %s, or one of this machine", DefaultRegistry)
		return
	}
	l.cfg.Registry = n.text
}

// These are the root keys under which a config may have its servers: claudeServers as in the files of Claude and Cursor,
// codeServers as in the files of VS Code, oldServers as in the files of older versions of mcpx.
const (
	claudeServers = "mcpServers"
	codeServers   = "servers"
	oldServers    = "mcp_servers"
)

func (l *loader) readRoot(n *node) {
	if n.kind != objectKind {
		l.faults = []Fault{{Path: "the file", Text: fmt.Sprintf("must hold an object, not %s", n.kind)}}
		return
	}
	l.duplicates(n)
	older := object{keys: l.ofMCPProxy()}
	place := func(m *node) int {
		if older.key(m.key) != nil {
			return 0 // keys of MCP-PROXY come first, so that mcpx's own keys are read later and replace their values
		}
		return 1
	}
	slices.SortStableFunc(n.members, func(a, b *node) int { return place(a) - place(b) })
	root := l.root()
	servers := editorServers(n)
	if servers != nil { // in an editor's settings, a key may mean something else than the key of mcpx with the same name
		root.keys = []key{{name: strings.Split(servers.path(), ".")[0], value: value{read: func(*node) { l.servers(servers) }}}}
	} else {
		l.defaultsOfServers(n)
	}
	l.members(n, root, func(m *node) bool {
		if servers != nil {
			switch {
			case protects(m):
				l.fault(m, "is not read from an editor's settings; write it into a config of mcpx's own (mcpx init --from FILE takes the servers)")
			case !isComment(m.key):
				l.otherClients.add(label(m.key), "")
			}
			return true
		}
		if l.proxies(m) {
			return true
		}
		if looksLikeServer(m) {
			l.fault(m, "looks like a server; servers belong in %q", claudeServers)
			return true
		}
		return l.ignoredKey(rootOfOtherClients, rootOfOlderSystems, m.key, "")
	})
	// A file without a key for servers and without other faults is most likely not a config file of mcpx.
	if !l.someServers && len(l.faults) == 0 {
		l.fault(n.child(claudeServers), "is missing; it holds the servers by name, as in the file of an MCP client (mcpx init --from FILE reads the file of any client)")
	}
}

// defaultsOfServers reads the root keys that are defaults for all servers. It runs before the servers are read, because these keys
// may come after the servers in the file. It ignores faults, because they are found again when all keys are read.
func (l *loader) defaultsOfServers(n *node) {
	first := newLoader(l.cfg.Path, l.o)
	root := first.root()
	for _, m := range n.members {
		if m.kind != nullKind && slices.Contains([]string{"confirm", "pin", "connect_timeout", "start", "stop_idle", "limits", "response_timeout"}, m.key) {
			root.key(m.key).read(m)
		}
	}
	l.everyServer = first.everyServer
	l.everyServer.MaxConcurrency = first.cfg.Limits.ServerCalls
}

func looksLikeServer(n *node) bool {
	return slices.ContainsFunc(n.members, func(m *node) bool {
		return (m.key == "command" || m.key == "url") && m.kind == stringKind
	})
}

// UI has the keys for the web page of mcpx.
type UI struct {
	// Shown means that mcpx serves the page. RecordCalls means that the page shows the arguments and results of recent calls.
	Shown, RecordCalls bool
}

func (l *loader) ui(n *node) {
	if n.kind == objectKind {
		l.members(n, l.uiObject(), nil)
		return
	}
	l.boolean(&l.cfg.UI.Shown).read(n)
}

func (l *loader) uiObject() object {
	calls := "names"
	if l.cfg.UI.RecordCalls {
		calls = "full"
	}
	return object{name: "ui", strict: true, keys: []key{
		{"calls", oneOf(l, &calls, "names", "full").andThen(func(*node) { l.cfg.UI.RecordCalls = calls == "full" }), "what the page shows of recent calls: `full` adds their arguments and results, without known secrets"},
	}}
}

// api reads the key api. If the file does not have the key, API stays nil, and [Config.ChangesServers] depends on auth.
func (l *loader) api(n *node) {
	l.cfg.API = new(bool)
	l.boolean(l.cfg.API).read(n)
}

// learn reads the key learn. If the file does not have the key, Learn stays nil, and [Config.Learns] depends on auth.
func (l *loader) learn(n *node) {
	l.cfg.Learn = new(bool)
	l.boolean(l.cfg.Learn).read(n)
}

func (l *loader) structured(into *conf.StructuredPolicy) value {
	return oneOf(l, into, "auto", "always", "once", "never")
}

func (l *loader) includeStructured(n *node) {
	if l.boolean(new(bool)).read(n); n.kind == boolKind {
		l.cfg.StructuredContent = map[string]conf.StructuredPolicy{"true": "always", "false": "never"}[n.text]
	}
}

func (l *loader) clients(n *node) {
	if !l.expectKind(objectKind, n) {
		return
	}
	for _, m := range n.members {
		if !l.glob(m, m.key) || !l.expectKind(objectKind, m) {
			continue
		}
		rule := conf.ClientRule{Name: m.key}
		l.members(m, l.client(&rule), nil)
		l.cfg.Clients = append(l.cfg.Clients, rule)
	}
}

func (l *loader) client(rule *conf.ClientRule) object {
	wait := l.wait(&rule.CallWait)
	return object{name: "client", keys: []key{
		{"structured_content", l.structured(&rule.Structured), "`auto`: as the server sent it, unless the table says otherwise. `once`: only where no text says the same. `never`: left out; what only it says becomes a text. `always`, for programs: also made from JSON in a text, for `inspect` and errors too"},
		{"text", oneOf(l, &rule.Text, "auto", "json"), "`json`: texts never become TOON or JavaScript, for programs that parse them"},
		{"result_forms", l.forms(&rule.Forms), "as the key at the top"},
		{"result_chars", l.limit(&rule.ResultChars, 1000), "how much of a result the client shows before it cuts by itself, in bytes. mcpx cuts earlier than that, and the rest is one `read_result` away. 0 is no limit"},
		{"description_chars", l.limit(&rule.DescriptionChars, 1), "the same for a description, in UTF-16 units"},
		{"call_wait", value{schema: duration, read: func(n *node) {
			wait.read(n)
			rule.CallWait = cmp.Or(rule.CallWait, maxDuration)
		}}, "how long the client waits for a call; 0 is no limit"},
	}}
}

// limit reads a limit in a rule for clients. In the file it must be at least minimum, or 0, which means no limit. In a
// [conf.ClientRule], 0 means that the rule does not set the limit; therefore limit stores a 0 of the file as [noLimit].
func (l *loader) limit(into *int, minimum int) value {
	limit := 0
	v := l.count(&limit, 0).andThen(func(n *node) {
		if limit > 0 && limit < minimum {
			l.fault(n, "must be at least %d, or 0 for no limit", minimum)
		}
		*into = cmp.Or(limit, noLimit)
	})
	v.schema = fmt.Sprintf(`{"anyOf": [{"const": 0}, {"type": "integer", "minimum": %d, "maximum": %d}]}`, minimum, noLimit)
	v.into, v.derived, v.maximum = into, true, 0
	return v
}

// levelSchema lists the log levels in lower case, so that editors suggest them. It accepts them in any case.
const levelSchema = `{"anyOf": [{"enum": ["debug", "info", "warn", "error"]},
	{"type": "string", "pattern": "^([dD][eE][bB][uU][gG]|[iI][nN][fF][oO]|[wW][aA][rR][nN]([iI][nN][gG])?|[eE][rR][rR][oO][rR]|[cC][rR][iI][tT][iI][cC][aA][lL])$"}]}`

// logLevel reads a log level, in any case. It also reads the levels warning and critical, because files of the older systems, which
// are Python programs, have them.
func (l *loader) logLevel(n *node) {
	level := *n
	level.text = strings.ToLower(n.text)
	switch level.text {
	case "warning":
		level.text = "warn"
	case "critical":
		level.text = "error"
	}
	oneOf(l, &l.cfg.LogLevel, "debug", "info", "warn", "error").read(&level)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
