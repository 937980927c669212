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

// given are the arguments of one of the two tools.
type given struct {
	// args are in the order of the advertised names; nil for absent ones.
	args [maxArguments]json.RawMessage
	// beside is an object with the arguments of other names, nil if there are none, and stray the violation of the first.
	beside []byte
	stray  string
}

// readArguments reads the arguments of one of the two tools. names are the advertised ones. Some models send the whole object as a
// string.
func readArguments(tool string, raw json.RawMessage, names []string) (g given, failure *results.Failure) {
	var by [maxArguments]string // the names under which they were given
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
			if g.stray == "" {
				g.stray = unknownArgument(tool, name, names)
			}
			g.beside = append(append(append(append(g.beside, ','), written...), ':'), value...)
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
	if g.beside != nil {
		g.beside[0] = '{'
		g.beside = append(g.beside, '}')
	}
	return g, failure
}

// strayed refuses arguments of other names: a call without them could do harm.
func (g *given) strayed() *results.Failure {
	if g.beside == nil {
		return nil
	}
	return results.Invalid(g.stray)
}

// unknownArgument is the violation of an argument with an unknown name.
func unknownArgument(tool, name string, known []string) string {
	if near := sanitize.Nearest(name, known); len(near) > 0 {
		return "/" + sanitize.Line(name, 60) + ": is unknown; did you mean " + near[0] + "?"
	}
	return "/" + sanitize.Line(name, 60) + ": is unknown; " + tool + " takes " + strings.Join(known, ", ")
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
