package config

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/pattern"
)

// reserved is the name of the server that is built in.
const reserved = "mcpx"

const maxNameLen = 64

// scalars is JSON Schema of an object of texts; people write ports as numbers.
const scalars = `{"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}}`

var serverName = pattern.New(`^[A-Za-z0-9._-]+$`)

// object is what a server may have: our own keys, and the keys of other clients that are honoured.
func (r *serverReader) object() object {
	return object{name: "server", keys: append(r.own(), r.otherClientKeys()...)}
}

// own are our own keys: how a server is reached, what it shows and may do, and when it runs.
func (r *serverReader) own() []key {
	l, s := r.l, &r.s
	return []key{
		{"type", value{read: r.kind, schema: kindSchema}, "without it `command` or `url` says it"},
		{"command", value{read: r.command, schema: `{"anyOf": [` + text + `, ` + texts + `, {"$ref": "#/$defs/zedCommand"}]}`, of: r.zedCommand}, "the program of a local server"},
		{"args", value{read: r.args, schema: texts}, "its arguments"},
		{"env", value{read: r.env, schema: scalars}, "variables that it gets beside a small environment"},
		{"cwd", r.string(&s.Cwd), "the folder that it starts in"},
		{"framing", oneOf(l, &s.Framing, "auto", "newline", "content-length"), "how its messages are parted"},
		{"url", value{read: r.url, schema: text}, "the address of a remote server"},
		{"urls", value{read: r.urls, schema: texts}, "in place of `url`: several instances of the server ([Instances](#instances))"},
		{"headers", value{read: r.headers, schema: scalars}, "headers of the requests to a remote server"},
		{"oauth", value{read: r.oauth, schema: `{"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/oauth"}]}`, of: func() object { return r.oauthObject(new(true)) }}, "how mcpx [logs in](#logging-in) to a remote server; false turns that off"},
		{"credentials", value{read: r.credentials, named: true, schema: text, off: "off"}, "headers that come from each caller: `header:NAME`, `claim:NAME`, `exchange` ([Credentials of callers](#credentials-of-callers))"},
		{"protocol", oneOf(l, &s.Protocol, "auto", "legacy", "modern"), "`legacy` (`initialize`) or `modern` (2026-07-28): the only one that is tried; `auto` begins with what the server spoke last, or what the client speaks over stdio, else `modern`. A server of both whose tools fail with \"no back-channel\" behind HTTP needs `legacy`"},

		{"enabled", l.boolean(&s.Enabled), "false keeps the entry and does not use the server"},
		{"description", l.str(&s.Description), "what the model reads about the server, in place of the server's own words"},
		{"tools", value{read: r.tools, schema: `{"anyOf": [` + someTexts + `, {"$ref": "#/$defs/tools"}]}`, of: r.toolsObject}, "which tools exist: `{\"allow\": [glob], \"deny\": [glob]}`; `deny` wins"},
		{"read_only", l.boolean(&s.ReadOnly), "only tools exist that declare themselves read-only"},
		{"confirm", switched(l, &s.Confirm, "destructive", "all"), "which calls the person must confirm; without it what the file says"},
		{"pin", switched(l, &s.Pin, "warn", "block"), "tools whose definition has changed since `mcpx lock`, or since the last start, are logged; `block` hides all that were not approved; without it what the file says"},
		{"overrides", value{read: r.overrides, named: true, of: func() object { return r.override(&conf.Override{}) }}, "`{\"GLOB\": {\"description\", \"annotations\", \"name\", \"arguments\"}}` repairs what the server declares of its tools, before the filters look at it"},
		{"validate", oneOf(l, &s.Validate, "strict", "off"), "`off` leaves judging arguments to the server"},
		{"verbatim", l.globs(&s.Verbatim), "tools whose results stay as they are; without it `read_*file*`, `*file_content*` and `*_show`"},

		{"connect_timeout", l.timeout(&s.ConnectTimeout), "for one attempt to connect; without it what the file says, else 30 s. A command that installs what it runs (`npx`, `uvx`, `docker run`, …) has 10 minutes while it is at work, unless this is set"},
		{"call_timeout", l.timeout(&s.CallTimeout), "for one call"},
		{"tool_timeouts", value{read: r.toolTimeouts, named: true, schema: moreThanZero}, "the same for single tools: `{\"GLOB\": duration}`"},
		{"idle_timeout", l.wait(&s.IdleTimeout), "a call without progress for so long ends; 0 is no limit"},
		{"start", oneOf(l, &s.Start, "eager", "lazy"), "`lazy` starts the server with its first call, once its catalogue is on disk"},
		{"stop_idle", l.orOff(&s.StopIdle), "stops the server when it was not used for so long; in `inspect` it is `idle` then. 0 and `off` never"},
		{"max_concurrency", l.count(&s.MaxConcurrency, 0), "most calls at once; 0 is no limit"},
		{"session", oneOf(l, &s.Session, "shared", "per_client"), "`per_client` gives each client a session of its own. Over HTTP with several clients: for servers that ask the user, keep working folders (roots), or remember who they speak to"},
		{"session_idle", l.timeout(&s.SessionIdle), "how long such a session stays without being used"},
	}
}

// serverReader is the state of reading one server.
type serverReader struct {
	l    *loader
	path string
	s    Server
	// faults are of this server only.
	faults []Fault
	// secrets are the values to strike out; true for those that are credentials.
	secrets map[string]bool
	// wanted are the references to values elsewhere.
	wanted   []wanted
	disabled bool
	// Where the keys stand that infer needs.
	commandAt, urlAt, urlsAt, unknownType, oauthAt, credentialsAt place
	// typeText is the type as written, when it is unknown.
	typeText string
	// httpURL: the key of the URL says that it is streamable HTTP.
	httpURL bool
	// commandArgs are those in the command.
	commandArgs []string
	// fileEnv is what comes in under env, in the order of the file.
	fileEnv [][2]string
}

func (l *loader) serverReader(path string) *serverReader {
	return &serverReader{l: l, path: path, s: l.everyServer, secrets: map[string]bool{}}
}

// fail notes a fault inside this server.
func (r *serverReader) fail(path string, offset int, format string, args ...any) {
	r.faults = append(r.faults, Fault{Path: path, Text: fmt.Sprintf(format, args...), offset: offset})
}

// servers reads one of the keys that hold servers. They are at the root, where the path
// is the key.
func (l *loader) servers(path string, n *node) {
	l.someServers = true
	switch {
	case n.kind == objectKind:
		for _, m := range n.members {
			l.server(m.key, join(path, m.key), m.offset, m.value)
		}
	case n.kind == arrayKind && (path == codeServers || path == oldServers):
		l.serverList(path, n)
	case path == oldServers:
		l.fault(path, n.offset, "must be an array or an object of servers, not %s", n.kind)
	default:
		l.is(objectKind, path, n)
	}
}

// server reads one entry. Faults of the name get this offset.
func (l *loader) server(name, path string, offset int, n *node) {
	if !l.is(objectKind, path, n) {
		return
	}
	r := l.serverReader(path)
	r.s.Name = name
	r.read(n)
	if r.isSelf() {
		l.warn("%s: is mcpx itself, skipped", path)
		return
	}
	switch before, twice := l.defined[name]; {
	case !twice:
		l.serverName(name, path, offset)
	case before != path: // else the key is there twice, which is a fault already
		l.fault(path, offset, "%s is defined already, by %s", quote(name), before)
	}
	r.finish(n)
	l.cfg.Servers = append(l.cfg.Servers, r.s)
}

func (l *loader) serverName(name, path string, offset int) {
	if name == "" {
		l.fault(path, offset, "needs a name")
		return
	}
	l.defined[name] = path
	switch {
	case strings.EqualFold(name, reserved):
		l.fault(path, offset, "the name %q is reserved", reserved)
	case utf8.RuneCountInString(name) > maxNameLen:
		l.fault(path, offset, "the name must not be longer than %d characters", maxNameLen)
	}
}

// read takes all keys: those of other clients first, so that ours win.
func (r *serverReader) read(n *node) {
	own, others := object{keys: r.own()}, object{}
	if slices.ContainsFunc(n.members, func(m member) bool { return own.key(m.key) == nil }) {
		others.keys = r.otherClientKeys()
	}
	for _, m := range n.members {
		if k := others.key(m.key); k != nil && m.value.kind != nullKind {
			k.read(join(r.path, m.key), m.value)
		}
	}
	r.l.members(r.path, n, own, func(_ string, m member) bool {
		named := nameInList(m.key) && strings.HasSuffix(r.path, "]")
		return named || others.key(m.key) != nil || r.l.ignoredKey(serverOfOtherClients, serverOfOlderSystems, m.key, r.path)
	})
}

// string reads a string with variables.
func (r *serverReader) string(into *string) value {
	return value{schema: text, read: func(path string, n *node) {
		if r.l.is(stringKind, path, n) {
			*into = r.expand(path, n.offset, n.text)
		}
	}}
}

func (r *serverReader) command(path string, n *node) {
	r.commandAt = place{path, n.offset}
	switch n.kind {
	case objectKind:
		r.l.members(path, n, r.zedCommand(), nil)
	case arrayKind:
		r.commandList(path, n)
	default:
		r.string(&r.s.Command).read(path, n)
	}
}

func (r *serverReader) args(path string, n *node) {
	args, ok := r.l.strings(path, n)
	if !ok {
		return
	}
	for i := range args {
		args[i] = r.expand(index(path, i), n.items[i].offset, args[i])
	}
	r.s.Args = args
	r.argSecrets(args)
}

// pairs are the members of an object of scalars; those that are null are left
// out. Numbers and booleans are their literals, since people write ports so.
func (r *serverReader) pairs(path string, n *node) []member {
	if !r.l.is(objectKind, path, n) {
		return nil
	}
	var pairs []member
	for _, m := range n.members {
		switch m.value.kind {
		case nullKind:
		case stringKind, numberKind, boolKind:
			pairs = append(pairs, m)
		default:
			r.l.is(stringKind, join(path, m.key), m.value)
		}
	}
	return pairs
}

func (r *serverReader) env(path string, n *node) {
	r.s.Env = map[string]string{}
	for _, m := range r.pairs(path, n) {
		at := join(path, m.key)
		if m.key == "" || strings.ContainsAny(m.key, "=\x00") {
			r.fail(at, m.offset, "is not the name of an environment variable")
			continue
		}
		r.s.Env[m.key] = r.expand(at, m.value.offset, m.value.text)
		r.secretIfNamed(m.key, r.s.Env[m.key])
	}
}

func (r *serverReader) headers(path string, n *node) {
	for _, m := range r.pairs(path, n) {
		at := join(path, m.key)
		value := r.expand(at, m.value.offset, m.value.text)
		if value != m.value.text {
			r.secret(value, true)
		}
		r.header(at, m.value.offset, m.key, value)
	}
}

// header sets a header; names ignore case.
func (r *serverReader) header(path string, offset int, name, value string) {
	value = strings.TrimSpace(value)
	switch {
	case !headerKey.MatchString(name):
		r.fail(path, offset, "is not the name of a header")
		return
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		r.fail(path, offset, "must not contain line breaks or control characters")
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

func (r *serverReader) url(path string, n *node) {
	r.string(&r.s.URL).read(path, n)
	r.urlSecrets(r.s.URL)
	r.urlAt, r.httpURL = place{path, n.offset}, false
}

// tools reads our object, or the list of names that Copilot has.
func (r *serverReader) tools(path string, n *node) {
	if n.kind == arrayKind {
		r.allow().read(path, n)
		return
	}
	if r.l.is(objectKind, path, n) {
		r.l.members(path, n, r.toolsObject(), nil)
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

// toolTimeouts reads durations by globs of tool names, in the order of the file.
func (r *serverReader) toolTimeouts(path string, n *node) {
	r.s.ToolTimeouts = nil
	for at, m := range r.l.named(path, n) {
		if !r.l.glob(at, m.offset, m.key) {
			continue
		}
		one := conf.ToolTimeout{Glob: m.key}
		r.l.timeout(&one.Timeout).read(at, m.value)
		r.s.ToolTimeouts = append(r.s.ToolTimeouts, one)
	}
}

// isSelf reports whether the entry is mcpx, which would start or ask itself for
// ever. Of URLs only a local one under the reserved name is surely so.
func (r *serverReader) isSelf() bool {
	if u, err := url.Parse(r.s.URL); err == nil && strings.EqualFold(r.s.Name, reserved) {
		if slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname()) {
			return true
		}
	}
	if r.s.Command == "" || len(r.s.Args) > 0 && r.s.Args[0] != "serve" && !strings.HasPrefix(r.s.Args[0], "-") {
		return false
	}
	name := program(r.s.Command)
	if name == reserved || r.l.o.Executable != "" && name == program(r.l.o.Executable) {
		return true
	}
	if r.l.o.Executable == "" || !strings.ContainsAny(r.s.Command, `/\`) {
		return false
	}
	own, err := os.Stat(r.l.o.Executable)
	if err != nil {
		return false
	}
	other, err := os.Stat(r.s.Command)
	return err == nil && os.SameFile(own, other)
}

// program is the name of an executable, whatever the system.
func program(path string) string {
	name := strings.ToLower(filepath.Base(strings.ReplaceAll(path, `\`, "/")))
	return strings.TrimSuffix(name, ".exe")
}

// finish puts the parts together once all keys are read.
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
	sortFaults(r.faults)
	texts := make([]string, len(r.faults))
	for i, f := range r.faults {
		texts[i] = f.String()
	}
	r.s.faults, r.s.Fault = r.faults, strings.Join(texts, "; ")
}
