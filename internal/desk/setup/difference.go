package setup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"mcpx/internal/base/pattern"
	"mcpx/internal/desk/config"
)

// Difference returns how two texts of a config differ, without secrets. There is one line for each value that differs. The function
// strike removes known secrets from a text. If the name of a member, such as token, says that its value may be a secret, the line
// has [secret] in place of the value. But references such as ${NAME} are shown, as is header:NAME in the key credentials. If a text
// cannot be parsed, Difference returns nil.
func Difference(before, after []byte, strike func(string) string) (lines []string) {
	was, now := valuesOf(before), valuesOf(after)
	if was == nil || now == nil {
		return nil
	}
	d := differ{strike: strike}
	d.values("", was, now, place{})
	return d.lines
}

// valuesOf decodes the text of a config, and returns nil if the text is not a valid JSON object.
func valuesOf(data []byte) map[string]any {
	d, err := parseJSONText(data)
	if err != nil {
		return nil
	}
	values := map[string]any{}
	if d.blank {
		return values
	}
	decoder := json.NewDecoder(bytes.NewReader(raw(&d.root)))
	decoder.UseNumber()
	if decoder.Decode(&values) != nil {
		return nil
	}
	return values
}

type differ struct {
	strike func(string) string
	lines  []string
}

// missing takes the place of the value of a member that does not exist.
type missing struct{}

// place says where in a config a value is.
type place struct {
	secret bool // the value, or values inside it, may be secrets
	ofTool bool // members have the names of a tool's parameters, which are not keys of mcpx
	// ofCaller is true inside the key credentials of a server. Values there, such as header:NAME, only say where the caller's
	// request has a secret, so they are not secret themselves.
	ofCaller bool
}

// member returns the place of the member with this name.
func (p place) member(name string) place {
	return place{
		secret: p.secret || holdsSecrets(name) || p.ofTool && config.SecretName(name), ofTool: p.ofTool || name == "arguments",
		ofCaller: p.ofCaller || name == "credentials" && !p.secret && !p.ofTool,
	}
}

// values compares the old and the new value at a path, and adds a line for each difference.
func (d *differ) values(path string, was, now any, at place) {
	if reflect.DeepEqual(was, now) {
		return
	}
	before, isObject := was.(map[string]any)
	after, still := now.(map[string]any)
	if isObject && still {
		names := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			d.values(strings.TrimPrefix(path+"."+name, "."), memberOf(before, name), memberOf(after, name), at.member(name))
		}
		return
	}
	path = d.strike(path)
	switch _, added := was.(missing); {
	case added:
		d.lines = append(d.lines, fmt.Sprintf("%s: added %s", path, d.shown(now, at)))
	case now == missing{}:
		d.lines = append(d.lines, fmt.Sprintf("%s: removed %s", path, d.shown(was, at)))
	default:
		d.lines = append(d.lines, fmt.Sprintf("%s: %s, now %s", path, d.shown(was, at), d.shown(now, at)))
	}
}

func memberOf(object map[string]any, name string) any {
	if value, there := object[name]; there {
		return value
	}
	return missing{}
}

// holdsSecrets reports whether a member with this name may have a secret as its value, or inside it.
func holdsSecrets(name string) bool {
	switch name {
	case "auth", "tokens", "oauth": // here the names of the members inside decide
		return false
	// These keys of mcpx have modes and limits, which are no secrets.
	case "session", "session_idle", "sessions", "catalogue_token_budget", "result_preview_tokens":
		return false
	}
	return slices.Contains([]string{"env", "headers", "http_headers", "key", "compat_key", "nats"}, name) || config.SecretName(name)
}

var onlyReferences = pattern.New(`^(?:[A-Za-z]+ )?(?:\$\{[^}]*\})+$`)

var fromCaller = pattern.New(`^(?:(?:header|claim):\S+|exchange)$`)

// shown returns a value without secrets, as JSON.
func (d *differ) shown(value any, at place) string {
	text, _ := json.Marshal(d.clean(value, at))
	return d.strike(string(text))
}

func (d *differ) clean(value any, at place) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, one := range value {
			out[name] = d.clean(one, at.member(name))
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, one := range value {
			out[i] = d.clean(one, at)
		}
		return out
	case string:
		if at.secret && !onlyReferences.MatchString(value) && !(at.ofCaller && fromCaller.MatchString(value)) {
			return "[secret]"
		}
	case json.Number:
		if at.secret {
			return "[secret]"
		}
	}
	return value
}
