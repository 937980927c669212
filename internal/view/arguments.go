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

// otherNames maps each argument name of inspect and exec to another name of the same argument. tools/list shows one of the
// two names, but mcpx accepts both, because models and frameworks use either.
var otherNames = map[string]string{
	"server": "server_name", "tool": "tool_name", "args": "arguments",
	"server_name": "server", "tool_name": "tool", "arguments": "args",
}

// maxArguments is enough for all arguments of inspect, and for all arguments of exec.
const maxArguments = 8

// given has the arguments of a call of inspect or exec.
type given struct {
	// args has the values in the order in which tools/list names the arguments; nil for a missing argument.
	args [maxArguments]json.RawMessage
	// unknown is a JSON object with the arguments whose names are unknown; nil if there are none. unknownError is the error
	// message for the first of them.
	unknown      []byte
	unknownError string
}

// readArguments parses the arguments of a call of inspect or exec. names are the argument names that tools/list shows. raw is
// the JSON object with the arguments; some models send a string that contains the object.
func readArguments(tool string, raw json.RawMessage, names []string) (g given, failure *results.Failure) {
	var by [maxArguments]string // the names that the client used
	if len(raw) > 0 && raw[0] == '"' {
		if text, ok := wire.Text(raw); ok {
			raw = json.RawMessage(text)
		}
	}
	if len(raw) == 0 || string(raw) == "null" {
		return g, nil
	}
	err := wire.Members(raw, func(name string, written, value []byte) bool {
		at := slices.Index(names, name)
		if at < 0 {
			at = slices.Index(names, otherNames[name])
		}
		switch {
		case at < 0:
			if g.unknownError == "" {
				g.unknownError = unknownArgument(tool, name, names)
			}
			g.unknown = wire.AppendMember(g.unknown, written, value)
		case by[at] == "" || by[at] == name || string(g.args[at]) == "null":
			g.args[at], by[at] = value, name
		case string(value) != "null" && !bytes.Equal(value, g.args[at]):
			failure = results.Invalid("/" + name + ": is given as " + by[at] + " as well, with another value; " + names[at] + " alone is enough")
		}
		return failure == nil
	})
	if err != nil && failure == nil {
		failure = results.Invalid("/: the arguments of " + tool + " must be an object")
	}
	if g.unknown != nil {
		g.unknown = append(g.unknown, '}')
	}
	return g, failure
}

// unknownFailure returns the failure for a call that has arguments with unknown names; nil if it has none. Such a call is not
// made, because without these arguments it could do harm.
func (g *given) unknownFailure() *results.Failure {
	if g.unknown == nil {
		return nil
	}
	return results.Invalid(g.unknownError)
}

// unknownArgument returns the error message for an argument with an unknown name.
func unknownArgument(tool, name string, known []string) string {
	if near := sanitize.Nearest(name, known); len(near) > 0 {
		return "/" + sanitize.Line(name, 60) + ": is unknown; did you mean " + near[0] + "?"
	}
	return "/" + sanitize.Line(name, 60) + ": is unknown; " + tool + " takes " + strings.Join(known, ", ")
}

// optional parses a string that may be missing.
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
