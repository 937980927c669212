package view

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"mcpx/internal/executor"
	"mcpx/internal/plain"
	"mcpx/internal/wire"
)

// otherNames are names that models and frameworks use for the arguments of the two
// tools.
var otherNames = map[string]string{"server": "server_name", "tool": "tool_name", "args": "arguments"}

// readArguments returns the arguments of one of the two tools in the order of its
// names; nil for those that are not there. Some models send the whole object as a
// string.
func readArguments(tool string, raw json.RawMessage, names []string) ([]json.RawMessage, *executor.Fault) {
	args := make([]json.RawMessage, len(names))
	by := make([]string, len(names)) // the names that they were given by
	if len(raw) > 0 && raw[0] == '"' {
		if text, ok := wire.Text(raw); ok {
			raw = json.RawMessage(text)
		}
	}
	if len(raw) == 0 || string(raw) == "null" {
		return args, nil
	}
	var fault *executor.Fault
	err := wire.Fields(raw, func(name string, value []byte) bool {
		at := slices.Index(names, name)
		if at < 0 {
			at = slices.Index(names, otherNames[name])
		}
		switch {
		case at < 0:
			fault = unknownArgument(tool, name, names)
		case by[at] == "" || by[at] == name || string(args[at]) == "null":
			args[at], by[at] = value, name
		case string(value) != "null" && !bytes.Equal(value, args[at]):
			fault = misuse("/" + name + ": is given as " + by[at] + " as well, with another value; " + names[at] + " alone is enough")
		}
		return fault == nil
	})
	if err != nil && fault == nil {
		fault = misuse("/: the arguments of " + tool + " must be an object")
	}
	return args, fault
}

// unknownArgument refuses an argument that nobody would read: a tool called
// without what was meant for it can do harm.
func unknownArgument(tool, name string, known []string) *executor.Fault {
	violation := "/" + plain.Line(name, 60) + ": is unknown; " + tool + " takes " + strings.Join(known, ", ")
	if near := plain.Nearest(name, known); len(near) > 0 {
		violation = "/" + plain.Line(name, 60) + ": is unknown; did you mean " + near[0] + "?"
	}
	return misuse(violation)
}

// misuse is a fault of the call of inspect or exec itself.
func misuse(violation string) *executor.Fault {
	return (&executor.Fault{Code: executor.CodeValidation, Message: violation}).With("violations", []string{violation})
}

// optional reads an argument that may be a string or absent.
func optional(name string, raw json.RawMessage) (string, *executor.Fault) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	text, ok := wire.Text(raw)
	if !ok {
		return "", misuse("/" + name + ": must be a string")
	}
	return text, nil
}

func required(name string, raw json.RawMessage) (string, *executor.Fault) {
	text, fault := optional(name, raw)
	if fault == nil && text == "" {
		return "", misuse("/" + name + ": is missing; exec takes server_name, tool_name and arguments")
	}
	return text, fault
}
