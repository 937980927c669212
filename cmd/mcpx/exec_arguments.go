package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"mcpx/internal/base/wire"
	"mcpx/internal/desk/config"
	"mcpx/internal/executor"
)

// each returns the arguments of each call that --each lists, or nil without the flag.
func (cmd *execCommand) each() (calls []json.RawMessage, err error) {
	if cmd.Each == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(cmd.Each), &calls); err != nil || len(calls) == 0 || len(calls) > executor.MaxEach {
		return nil, &hintError{
			fmt.Sprintf("--each is not a list of 1 to %d calls", executor.MaxEach),
			`write the arguments of each call, such as '[{"KEY": "VALUE"}, {"KEY": "OTHER"}]'`,
		}
	}
	return calls, nil
}

// arguments reads the arguments of the tool from the command line or stdin. It returns either JSON in arguments, or keys and
// values in pairs. The tool's schema, which is not known yet, decides which types the values in pairs have. From stdin it takes
// at most maxMessage bytes.
func (cmd *execCommand) arguments(c *cli, s streams, maxMessage int64) (arguments []byte, pairs [][2]string, err error) {
	if len(cmd.Arguments) == 0 {
		return nil, nil, nil
	}
	first := strings.TrimSpace(cmd.Arguments[0])
	switch {
	case first == "-":
		if arguments, err = io.ReadAll(io.LimitReader(s.in, maxMessage+1)); err != nil {
			return nil, nil, fmt.Errorf("reading the arguments: %w", err)
		}
		if int64(len(arguments)) > maxMessage {
			return nil, nil, &hintError{fmt.Sprintf("the arguments are larger than %d bytes", maxMessage), "raise max_message_bytes in the config"}
		}
	case first == "" || strings.ContainsAny(first[:1], `{["'`):
		arguments = []byte(cmd.Arguments[0])
	default:
		for _, one := range cmd.Arguments {
			key, value, ok := strings.Cut(one, "=")
			if !ok || key == "" {
				return nil, nil, &hintError{
					fmt.Sprintf("%q is not an argument of a tool", one),
					"write KEY=VALUE, or all arguments as one JSON object",
				}
			}
			pairs = append(pairs, [2]string{key, value})
		}
		return nil, pairs, nil
	}
	if len(cmd.Arguments) > 1 {
		return nil, nil, &hintError{
			fmt.Sprintf("unexpected %q after the JSON object with the arguments", cmd.Arguments[1]),
			"put it into single quotes, or write KEY=VALUE for each",
		}
	}
	if len(bytes.TrimSpace(arguments)) == 0 {
		return nil, nil, nil
	}
	arguments, err = config.StandardJSON("arguments", arguments)
	var syntax *config.SyntaxError
	if errors.As(err, &syntax) { // not returned as it is: for a SyntaxError mcpx exits with 2, which means a fault in the config
		err = &hintError{syntax.Error(), "KEY=VALUE needs no quotes: " + c.hint("exec", cmd.Server, cmd.Tool, "KEY=VALUE")}
	}
	return arguments, nil, err
}

// properties returns the schemas of a tool's arguments, by name. It returns none if the tool's schema is
// invalid.
func properties(schema json.RawMessage) map[string]json.RawMessage {
	var object struct {
		Properties map[string]json.RawMessage
	}
	_ = json.Unmarshal(schema, &object)
	return object.Properties
}

// typesOf returns the JSON types that a schema allows, at its top level or in its members anyOf and oneOf.
func typesOf(schema json.RawMessage) []string {
	var s struct {
		Type         json.RawMessage
		AnyOf, OneOf []json.RawMessage
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	var one string
	var all []string
	if json.Unmarshal(s.Type, &one) == nil && one != "" {
		all = append(all, one)
	} else if json.Unmarshal(s.Type, &all) != nil {
		all = nil
	}
	for _, sub := range append(s.AnyOf, s.OneOf...) {
		all = append(all, typesOf(sub)...)
	}
	return all
}

// object makes a JSON object from keys and values. schema is the tool's schema. A value becomes JSON if it is valid JSON, and if
// the schema names types for its key, but not the type string. Any other value becomes a string.
func object(pairs [][2]string, schema json.RawMessage) []byte {
	schemas := properties(schema)
	members := make(map[string]json.RawMessage, len(pairs))
	for _, pair := range pairs {
		key, value := pair[0], pair[1]
		members[key] = wire.Encode(value)
		types := typesOf(schemas[key])
		if len(types) > 0 && !slices.Contains(types, "string") && json.Valid([]byte(value)) {
			members[key] = json.RawMessage(value)
		}
	}
	data, _ := json.Marshal(members) // the members are valid JSON
	return data
}
