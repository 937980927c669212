package setup

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"mcpx/internal/base/pattern"
	"mcpx/internal/desk/config"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// get is the value of a key; of several the last, as in the readers of JSON. It is
// nil where there is none.
func (o object) get(key string) any {
	for _, f := range slices.Backward(o) {
		if f.key == key {
			return f.value
		}
	}
	return nil
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

func (o object) without(keys ...string) object {
	return slices.DeleteFunc(slices.Clone(o), func(f field) bool { return slices.Contains(keys, f.key) })
}

// text is a string, or empty.
func (o object) text(key string) (s string) {
	if text, err := marshal(o.get(key)); err != nil || json.Unmarshal(text, &s) != nil {
		return ""
	}
	return s
}

var (
	workspaceFolder = pattern.New(`\$\{workspaceFolder\}`)

	dollarName  = pattern.New(`\$([A-Za-z_][A-Za-z0-9_]*)`)
	openCodeEnv = pattern.New(`\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// ofMcpx makes an entry of mcpx's config of one of a client. config reads the keys of
// clients: only what it would read as something else is changed here. leftOut are
// keys that mean nothing to mcpx.
func (o object) ofMcpx(dialect string) (entry object, leftOut []string) {
	switch dialect {
	case "context_servers": // Zed's timeout is that of a start
		o = o.without("timeout", "source")
	case "mcp", "mcp.servers": // opencode has a timeout for listing tools, and its own form of variables
		o = rewrite(o.without("timeout", "oauth", "codemode"), openCodeEnv, "$${$1}")
		if env := o.get("environment"); env != nil {
			o = o.without("environment").with("env", env)
		}
	case "gemini":
		o = rewrite(o, dollarName, "$${$1}")
	}
	for _, f := range o {
		switch text, _ := f.value.(json.RawMessage); {
		case string(text) == "null":
		case config.Ignored(f.key):
			leftOut = append(leftOut, f.key)
		default:
			entry = entry.with(f.key, f.value)
		}
	}
	return entry, leftOut
}

// rewrite replaces in all strings of an entry.
func rewrite(entry object, what *pattern.Lazy, with string) object {
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

// inFolder makes relative names mean what they meant to the client: a server of a
// project is started in the project's folder.
func (o object) inFolder(project, beside string) object {
	if project != "" && (o.get("command") != nil || o.text("cwd") != "") {
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
