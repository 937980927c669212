package view

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
	"mcpx/internal/results"
)

// otherNames maps the arguments of the two tools to alternative names. All are always accepted, as models and frameworks use
// either, whatever is advertised.
var otherNames = map[string]string{
	"server": "server_name", "tool": "tool_name", "args": "arguments",
	"server_name": "server", "tool_name": "tool", "arguments": "args",
}

// maxArguments is at least the number of arguments of each of the two tools.
const maxArguments = 8

// readArguments returns the arguments of one of the two tools in the order of names, which are the advertised ones; nil for absent
// ones. Some models send the whole object as a string.
func readArguments(tool string, raw json.RawMessage, names []string) (args [maxArguments]json.RawMessage, failure *results.Failure) {
	var by [maxArguments]string // the names under which they were given
	if len(raw) > 0 && raw[0] == '"' {
		if text, ok := wire.Text(raw); ok {
			raw = json.RawMessage(text)
		}
	}
	if len(raw) == 0 || string(raw) == "null" {
		return args, nil
	}
	err := wire.Fields(raw, func(name string, value []byte) bool {
		at := slices.Index(names, name)
		if at < 0 {
			at = slices.Index(names, otherNames[name])
		}
		switch {
		case at < 0:
			failure = unknownArgument(tool, name, names)
		case by[at] == "" || by[at] == name || string(args[at]) == "null":
			args[at], by[at] = value, name
		case string(value) != "null" && !bytes.Equal(value, args[at]):
			failure = results.Invalid("/" + name + ": is given as " + by[at] + " as well, with another value; " + names[at] + " alone is enough")
		}
		return failure == nil
	})
	if err != nil && failure == nil {
		failure = results.Invalid("/: the arguments of " + tool + " must be an object")
	}
	return args, failure
}

// unknownArgument refuses an unknown argument: a call without it could do harm.
func unknownArgument(tool, name string, known []string) *results.Failure {
	violation := "/" + sanitize.Line(name, 60) + ": is unknown; " + tool + " takes " + strings.Join(known, ", ")
	if near := sanitize.Nearest(name, known); len(near) > 0 {
		violation = "/" + sanitize.Line(name, 60) + ": is unknown; did you mean " + near[0] + "?"
	}
	return results.Invalid(violation)
}

// optional reads a string that may be absent.
func optional(name string, raw json.RawMessage) (string, *results.Failure) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	text, ok := wire.Text(raw)
	if !ok {
		return "", results.Invalid("/" + name + ": must be a string")
	}
	return text, nil
}

// required reads exec's argument names[at].
func required(names []string, at int, raw json.RawMessage) (string, *results.Failure) {
	text, failure := optional(names[at], raw)
	if failure == nil && text == "" {
		return "", results.Invalid("/" + names[at] + ": is missing; exec takes " + names[0] + ", " + names[1] + " and " + names[2])
	}
	return text, failure
}
