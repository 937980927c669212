package setup

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// get is the value of a key; of several the last, as in the readers of JSON.
func (o object) get(key string) (any, bool) {
	for i := len(o) - 1; i >= 0; i-- {
		if o[i].key == key {
			return o[i].value, true
		}
	}
	return nil, false
}

// with has the key set, at its place if it is there.
func (o object) with(key string, value any) object {
	o = slices.Clone(o)
	for i := range o {
		if o[i].key == key {
			o[i].value = value
			return o
		}
	}
	return append(o, field{key, value})
}

func (o object) without(key string) object {
	return slices.DeleteFunc(slices.Clone(o), func(f field) bool { return f.key == key })
}

// decode reads a member into a value; false if it is not there or of another type.
func (o object) decode(key string, into any) bool {
	value, ok := o.get(key)
	if !ok {
		return false
	}
	text, err := marshal(value)
	return err == nil && string(text) != "null" && json.Unmarshal(text, into) == nil
}

// text is a string, or empty.
func (o object) text(key string) string {
	var s string
	o.decode(key, &s)
	return s
}

// translator makes an entry of mcpx's config of one of a client. Values that it
// does not understand it copies: config says what is wrong with them.
type translator struct {
	out   object
	left  []string
	fault string
}

// meaningless are keys of clients that say nothing to mcpx: approval, sandboxes
// that are off, logins and looks.
var meaningless = []string{
	"alwaysAllow", "autoApprove", "trust", "default_tools_approval_mode", "gallery", "dev", "version", "name", "id",
	"icon", "metadata", "tags", "settings", "alwaysLoad", "required", "supports_parallel_tool_calls",
	"watchPaths", "start_on_launch", "extensionName", "scopes", "oauth_resource", "authProviderType", "headersHelper",
	"port", "endpoint", "auto_start",
}

// renamed are keys that are the same as ours under other names.
var renamed = map[string]string{
	"environment": "env", "httpUrl": "url", "serverUrl": "url", "http_headers": "headers",
	"transport": "type", "transportType": "type", "transport_type": "type", "working_directory": "cwd",
	"startup_timeout_sec": "connect_timeout", "startup_timeout": "connect_timeout",
	"tool_timeout_sec": "call_timeout", "stdio_mode": "framing", "instructions": "description",
}

func (t *translator) entry(entry object, dialect string) {
	switch dialect {
	case "context_servers":
		entry = t.zed(entry)
	case "mcp", "mcp.servers":
		entry = openCode(entry)
	case "gemini":
		entry = rewrite(entry, dollarName, "$${$1}")
	}
	// What only adds a header comes after the headers.
	for _, adds := range []bool{false, true} {
		for _, f := range entry {
			if text, ok := f.value.(json.RawMessage); ok && string(text) == "null" {
				continue
			}
			if adds == (f.key == "bearer_token_env_var" || f.key == "env_http_headers") {
				t.member(entry, f)
			}
		}
	}
	t.splitCommand()
	slices.SortStableFunc(t.out, func(a, b field) int { return rank(a.key) - rank(b.key) })
}

// rank is the order in which an entry is written.
func rank(key string) int {
	order := []string{"type", "command", "args", "env", "envFile", "env_vars", "cwd", "url", "headers", "enabled", "description", "tools"}
	if i := slices.Index(order, key); i >= 0 {
		return i
	}
	return len(order)
}

func (t *translator) member(entry object, f field) {
	switch f.key {
	case "disabled":
		var disabled bool
		if entry.decode("disabled", &disabled) {
			if disabled {
				t.out = t.out.with("enabled", false)
			}
			return
		}
	case "enabled":
		var enabled bool
		if entry.decode("enabled", &enabled) && enabled {
			return // the default
		}
	case "includeTools", "enabled_tools":
		t.filter("allow", f.value)
		return
	case "excludeTools", "disabled_tools", "disabledTools":
		t.filter("deny", f.value)
		return
	case "tools":
		var names []string
		if entry.decode("tools", &names) {
			if !slices.Contains(names, "*") {
				t.filter("allow", names)
			}
			return
		}
	case "bearer_token_env_var", "env_http_headers":
		if t.envHeader(entry, f.key) {
			return
		}
	case "httpUrl":
		t.out = t.out.with("type", "http")
	case "sandboxEnabled":
		var on bool
		if entry.decode(f.key, &on) && !on {
			return
		}
	}
	if slices.Contains(meaningless, f.key) {
		t.left = append(t.left, f.key)
		return
	}
	key := f.key
	if ours, ok := renamed[key]; ok {
		key = ours
	}
	if _, twice := t.out.get(key); twice && key != f.key {
		return // our own name for it wins
	}
	t.out = t.out.with(key, f.value)
}

// envHeader makes headers of variables that Codex names; false if they are not
// names.
func (t *translator) envHeader(entry object, key string) bool {
	names := map[string]string{}
	if key == "bearer_token_env_var" {
		if name := entry.text(key); name != "" {
			t.header("Authorization", "Bearer ${"+name+"}")
			return true
		}
	} else if entry.decode(key, &names) {
		for _, header := range sortedKeys(names) {
			t.header(header, "${"+names[header]+"}")
		}
		return true
	}
	return false
}

// filter adds to tools.allow or tools.deny.
func (t *translator) filter(kind string, names any) {
	var tools object
	if before, ok := t.out.get("tools"); ok {
		tools, _ = before.(object)
	}
	t.out = t.out.with("tools", tools.with(kind, names))
}

func (t *translator) header(name, value string) {
	var headers object
	if before, ok := t.out.get("headers"); ok {
		switch h := before.(type) {
		case object:
			headers = h
		default:
			var pairs map[string]string
			t.out.decode("headers", &pairs)
			for _, key := range sortedKeys(pairs) {
				headers = append(headers, field{key, pairs[key]})
			}
		}
	}
	t.out = t.out.with("headers", headers.with(name, value))
}

// splitCommand parts a command that is a list, as opencode has it.
func (t *translator) splitCommand() {
	var words []string
	if !t.out.decode("command", &words) || len(words) == 0 {
		return
	}
	var args []string
	t.out.decode("args", &args)
	t.out = t.out.with("command", words[0])
	if args = append(words[1:], args...); len(args) > 0 {
		t.out = t.out.with("args", args)
	}
}

// zed reads the older form too, in which command is an object.
func (t *translator) zed(entry object) object {
	var command struct {
		Path string            `json:"path"`
		Args []string          `json:"args"`
		Env  map[string]string `json:"env"`
	}
	if entry.decode("command", &command) && command.Path != "" {
		entry = entry.with("command", command.Path)
		if command.Args != nil {
			entry = entry.with("args", command.Args)
		}
		if len(command.Env) > 0 {
			entry = entry.with("env", command.Env)
		}
	}
	if entry.text("command") == "" && entry.text("url") == "" {
		t.fault = "is an extension of Zed, which alone can start it"
	}
	return entry.without("timeout")
}

var (
	workspaceFolder = regexp.MustCompile(`\$\{workspaceFolder\}`)

	dollarName  = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)
	openCodeEnv = regexp.MustCompile(`\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// openCode has its own form of variables, and a timeout for listing tools.
func openCode(entry object) object {
	if kind := entry.text("type"); kind == "local" || kind == "remote" {
		entry = entry.without("type")
	}
	entry = entry.without("timeout").without("oauth").without("codemode")
	return rewrite(entry, openCodeEnv, "$${$1}")
}

// rewrite replaces in all strings of an entry.
func rewrite(entry object, what *regexp.Regexp, with string) object {
	out := make(object, len(entry))
	for i, f := range entry {
		text, err := marshal(f.value)
		if err != nil {
			return entry
		}
		out[i] = field{f.key, json.RawMessage(what.ReplaceAll(text, []byte(with)))}
	}
	return out
}

// inFolder makes what is relative mean what it meant to the client: a server of a
// project is started in the project's folder.
func (o object) inFolder(project, beside string) object {
	if project != "" && (o.text("command") != "" || o.text("cwd") != "") {
		switch cwd := o.text("cwd"); {
		case cwd == "" || cwd == ".":
			o = o.with("cwd", project)
		case !filepath.IsAbs(cwd) && !strings.HasPrefix(cwd, "$") && !strings.HasPrefix(cwd, "~"):
			o = o.with("cwd", filepath.Join(project, cwd))
		}
	}
	if name := o.text("envFile"); name != "" && !filepath.IsAbs(name) && !strings.HasPrefix(name, "$") {
		o = o.with("envFile", filepath.Join(beside, name))
	}
	return o
}
