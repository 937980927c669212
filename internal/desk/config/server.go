package config

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/pattern"
)

// reserved is the name of the server that is built in.
const reserved = "mcpx"

const maxNameLen = 64

var serverName = pattern.New(`^[A-Za-z0-9._-]+$`)

// keys are the keys of a server that are our own.
func (r *serverReader) keys() map[string]reader {
	l, s := r.l, &r.s
	return map[string]reader{
		"type":            r.kind,
		"command":         r.command,
		"args":            r.args,
		"env":             r.env,
		"cwd":             r.string(&s.Cwd),
		"url":             r.url,
		"urls":            r.urls,
		"headers":         r.headers,
		"enabled":         l.boolean(&s.Enabled),
		"description":     l.str(&s.Description),
		"tools":           r.tools,
		"read_only":       l.boolean(&s.ReadOnly),
		"overrides":       r.overrides,
		"validate":        l.oneOf(&s.Validate, "strict", "off"),
		"verbatim":        l.globs(&s.Verbatim),
		"connect_timeout": l.timeout(&s.ConnectTimeout),
		"start":           l.oneOf(&s.Start, "eager", "lazy"),
		"stop_idle":       l.orOff(&s.StopIdle),
		"call_timeout":    l.timeout(&s.CallTimeout),
		"idle_timeout":    l.wait(&s.IdleTimeout),
		"tool_timeouts":   r.toolTimeouts,
		"session_idle":    l.timeout(&s.SessionIdle),
		"max_concurrency": l.count(&s.MaxConcurrency, 0),
		"session":         l.oneOf(&s.Session, "shared", "per_client"),
		"framing":         l.oneOf(&s.Framing, "auto", "newline", "content-length"),
		"protocol":        l.oneOf(&s.Protocol, "auto", "legacy", "modern"),

		"confirm":     l.switched(&s.Confirm, "destructive", "all"),
		"pin":         l.switched(&s.Pin, "warn", "block"),
		"oauth":       r.oauth,
		"credentials": r.credentials,
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

// fail notes a fault inside this server.
func (r *serverReader) fail(path string, offset int, format string, args ...any) {
	r.faults = append(r.faults, Fault{Path: path, Text: fmt.Sprintf(format, args...), offset: offset})
}

// servers reads one of the keys that hold servers. They are at the root, where the path
// is the key.
func (l *loader) servers(path string, n *node) {
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
	r := &serverReader{l: l, path: path, s: serverDefaults(name), secrets: map[string]bool{}}
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
	others := r.otherClientKeys()
	for _, m := range n.members {
		if read := others[m.key]; read != nil && m.value.kind != nullKind {
			read(join(r.path, m.key), m.value)
		}
	}
	r.l.members(r.path, n, r.keys(), func(_ string, m member) bool {
		named := nameInList(m.key) && strings.HasSuffix(r.path, "]")
		return named || others[m.key] != nil || r.l.ignoredKey(serverOfOtherClients, serverOfOlderSystems, m.key, r.path)
	})
}

// string reads a string with variables.
func (r *serverReader) string(into *string) reader {
	return func(path string, n *node) {
		if r.l.is(stringKind, path, n) {
			*into = r.expand(path, n.offset, n.text)
		}
	}
}

func (r *serverReader) command(path string, n *node) {
	r.commandAt = place{path, n.offset}
	switch n.kind {
	case objectKind:
		r.zedCommand(path, n)
	case arrayKind:
		r.commandList(path, n)
	default:
		r.string(&r.s.Command)(path, n)
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
	r.string(&r.s.URL)(path, n)
	r.urlSecrets(r.s.URL)
	r.urlAt, r.httpURL = place{path, n.offset}, false
}

// tools reads our object, or the list of names that Copilot has.
func (r *serverReader) tools(path string, n *node) {
	if n.kind == arrayKind {
		r.allow(path, n)
		return
	}
	if r.l.is(objectKind, path, n) {
		r.l.members(path, n, map[string]reader{"allow": r.allow, "deny": r.l.globs(&r.s.Tools.Deny)}, nil)
	}
}

func (r *serverReader) allow(path string, n *node) {
	r.l.allowed(r.l.globs(&r.s.Tools.Allow))(path, n)
}

// toolTimeouts reads durations by globs of tool names, in the order of the file.
func (r *serverReader) toolTimeouts(path string, n *node) {
	r.s.ToolTimeouts = nil
	for at, m := range r.l.named(path, n) {
		if !r.l.glob(at, m.offset, m.key) {
			continue
		}
		one := ToolTimeout{Glob: m.key}
		r.l.timeout(&one.Timeout)(at, m.value)
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
