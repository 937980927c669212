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

// otherNames maps each argument name of inspect and exec to an alternative name. Both are always accepted, because models and
// frameworks use either, whatever mcpx lists.
var otherNames = map[string]string{
	"server": "server_name", "tool": "tool_name", "args": "arguments",
	"server_name": "server", "tool_name": "tool", "arguments": "args",
}

// maxArguments is at least the number of arguments of inspect and of exec.
const maxArguments = 8

// given has the arguments of a call of inspect or exec.
type given struct {
	// args are in the order of the listed names; the element for a missing argument is nil.
	args [maxArguments]json.RawMessage
	// beside is an object with the arguments whose names are unknown, nil if there are none. stray is the error message for the
	// first of them.
	beside []byte
	stray  string
}

// readArguments parses the arguments of a call of inspect or exec. names are the listed names. raw may also be a string that
// contains the object, because some models send that.
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

// strayed returns the failure for arguments with unknown names, because a call without them could do harm. It returns nil if
// there are none.
func (g *given) strayed() *results.Failure {
	if g.beside == nil {
		return nil
	}
	return results.Invalid(g.stray)
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
