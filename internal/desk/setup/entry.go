package setup

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"mcpx/internal/base/pattern"
	"mcpx/internal/desk/config"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// get returns the value of a key, or nil. If the key occurs several times, it returns the last value, as JSON parsers do.
func (o object) get(key string) any {
	for _, f := range slices.Backward(o) {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

// withKey returns a copy of the object with key set to value. An existing key keeps its position.
func (o object) withKey(key string, value any) object {
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

// text returns the string value of a key, or "" if there is none.
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
	// openCodeFile matches opencode's reference to a file. A relative path begins at the folder of opencode's config.
	openCodeFile = pattern.New(`(^|[^$])\{file:([^}"]+)\}`)
)

// ofMcpx converts a client's entry to mcpx's format. Package config knows the keys of most clients, so ofMcpx changes only what
// config would misunderstand. dialect tells the clients apart. Usually it has the keys that lead to the servers in the client's
// file, joined by dots, such as mcp.servers. leftOut has the keys that mcpx does not support.
func (o object) ofMcpx(dialect string) (entry object, leftOut []string) {
	o = o.flat()
	var otherMeaning []string // keys that package config would misunderstand
	switch dialect {
	case "extensions":
		o = o.ofGoose()
	case "context_servers": // in Zed, timeout limits only the start of a server
		otherMeaning, o = []string{"timeout"}, o.without("source")
	case "mcp", "mcp.servers": // in opencode, timeout limits only tools/list; variables are written {env:NAME}
		otherMeaning = []string{"timeout", "oauth", "codemode"}
		o = rewrite(o, openCodeEnv, "$${$1}")
		o = rewrite(o, openCodeFile, "$1$${file:$2}")
		if env := o.get("environment"); env != nil {
			o = o.without("environment").withKey("env", env)
		}
	case "gemini":
		o = rewrite(o, dollarName, "$${$1}")
	}
	for _, f := range o {
		switch text, _ := f.value.(json.RawMessage); {
		case string(text) == "null":
		case config.Ignored(f.key) || slices.Contains(otherMeaning, f.key):
			leftOut = append(leftOut, f.key)
		default:
			entry = entry.withKey(f.key, f.value)
		}
	}
	return entry, leftOut
}

// flat returns an entry in the form of most clients. In entries of Cline, the command or URL can be in an object named transport; flat
// moves the members of this object into the entry.
func (o object) flat() object {
	text, err := marshal(o.get("transport"))
	if err != nil {
		return o
	}
	if v, err := hujson.Parse(text); err == nil && v.Value.Kind() == '{' {
		return append(o.without("transport"), fields(&v)...)
	}
	return o
}

// ofGoose converts an entry of Goose. env_keys has the names of variables whose values Goose keeps elsewhere, so the result refers to
// variables of mcpx's environment. An extension that is a part of Goose has neither a command nor a url in the result.
func (o object) ofGoose() object {
	env := object{}
	if text, err := marshal(o.get("env_keys")); err == nil {
		var names []string
		_ = json.Unmarshal(text, &names)
		for _, name := range names {
			env = append(env, field{name, "${" + name + "}"})
		}
	}
	if text, err := marshal(o.get("envs")); err == nil {
		if v, err := hujson.Parse(text); err == nil && v.Value.Kind() == '{' {
			for _, f := range fields(&v) {
				env = env.withKey(f.key, f.value)
			}
		}
	}
	entry := object{}
	for _, f := range o.without("name", "display_name", "bundled", "env_keys", "envs") {
		empty := slices.Contains([]string{"null", `""`, "[]", "{}"}, fmt.Sprintf("%s", f.value))
		switch {
		case empty:
		case f.key == "cmd":
			entry = append(entry, field{"command", f.value})
		case f.key == "uri":
			entry = append(entry, field{"url", f.value})
		case f.key == "available_tools":
			entry = append(entry, field{"includeTools", f.value})
		default:
			entry = append(entry, f)
		}
	}
	if len(env) > 0 {
		entry = append(entry, field{"env", env})
	}
	return entry
}

// rewrite returns the entry with all matches of the pattern old replaced by replacement. It replaces in values, not in keys.
func rewrite(entry object, old *pattern.Lazy, replacement string) object {
	out := make(object, len(entry))
	for i, f := range entry {
		text, err := marshal(f.value)
		if err != nil {
			return entry
		}
		out[i] = field{f.key, json.RawMessage(old.ReplaceAll(text, []byte(replacement)))}
	}
	return out
}

// inFolder makes the relative paths of an entry absolute, as the client would. If project is not empty, it is the folder in
// which the server runs, and to which cwd is relative; without a project, cwd stays as it is. The paths of other files are
// relative to the parameter folder, where the client's file is.
func (o object) inFolder(project, folder string) object {
	if project != "" && (o.get("command") != nil || o.text("cwd") != "") {
		switch cwd := o.text("cwd"); {
		case cwd == "" || cwd == ".":
			o = o.withKey("cwd", project)
		case !filepath.IsAbs(cwd) && !strings.HasPrefix(cwd, "$") && !strings.HasPrefix(cwd, "~"):
			o = o.withKey("cwd", filepath.Join(project, cwd))
		}
	}
	o = o.withFiles(folder)
	if name := o.text("envFile"); name != "" && !filepath.IsAbs(name) && !strings.HasPrefix(name, "$") {
		o = o.withKey("envFile", filepath.Join(folder, name))
	}
	return o
}

var fileReference = pattern.New(`\$\{file:([^}"]+)\}`)

// withFiles makes the relative paths in ${file:PATH} absolute, because mcpx would look for them in the folder of its own config.
func (o object) withFiles(folder string) object {
	out := make(object, len(o))
	for i, f := range o {
		out[i] = f
		text, err := marshal(f.value)
		if err != nil || !fileReference.MatchString(string(text)) {
			continue
		}
		out[i].value = json.RawMessage(fileReference.ReplaceAllStringFunc(string(text), func(reference string) string {
			path := strings.TrimSuffix(strings.TrimPrefix(reference, "${file:"), "}")
			if filepath.IsAbs(path) || strings.HasPrefix(path, "~") || strings.Contains(path, `\`) {
				return reference
			}
			return "${file:" + strings.Trim(string(quoted(filepath.Join(folder, path))), `"`) + "}"
		}))
	}
	return out
}
