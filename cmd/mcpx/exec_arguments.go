package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"mcpx/internal/app"
	"mcpx/internal/base/wire"
	"mcpx/internal/desk/config"
)

// maxArguments bounds the arguments from stdin.
const maxArguments = 64 << 20

// arguments reads the arguments of the tool: a JSON object, or pairs of a key and a
// value whose type is in the tool's schema.
func (cmd *execCommand) arguments(s streams) (arguments []byte, pairs [][2]string, err error) {
	if len(cmd.Arguments) == 0 {
		return nil, nil, nil
	}
	first := strings.TrimSpace(cmd.Arguments[0])
	switch {
	case first == "-":
		if arguments, err = io.ReadAll(io.LimitReader(s.in, maxArguments)); err != nil {
			return nil, nil, fmt.Errorf("reading the arguments: %w", err)
		}
	case first == "" || strings.ContainsAny(first[:1], `{["'`):
		arguments = []byte(cmd.Arguments[0])
	default:
		for _, one := range cmd.Arguments {
			key, value, ok := strings.Cut(one, "=")
			if !ok || key == "" {
				return nil, nil, &hintError{
					fmt.Sprintf("%q is no argument of a tool", one),
					"write KEY=VALUE, or all arguments as one JSON object",
				}
			}
			pairs = append(pairs, [2]string{key, value})
		}
		return nil, pairs, nil
	}
	if len(cmd.Arguments) > 1 {
		return nil, nil, &hintError{
			fmt.Sprintf("%q is too much: the arguments are one JSON object", cmd.Arguments[1]),
			"put it into single quotes, or write KEY=VALUE for each",
		}
	}
	if len(bytes.TrimSpace(arguments)) == 0 {
		return nil, nil, nil
	}
	arguments, err = config.StandardJSON("arguments", arguments)
	var syntax *config.SyntaxError
	if errors.As(err, &syntax) { // exit 2 is for a SyntaxError of the config
		err = &hintError{syntax.Error(), fmt.Sprintf(`KEY=VALUE needs no quotes: mcpx exec %s %s KEY=VALUE`, cmd.Server, cmd.Tool)}
	}
	return arguments, nil, err
}

// propertyTypes are the JSON types of a tool's arguments, if the schema has them in
// their usual places.
func propertyTypes(a *app.App, server, tool string) map[string][]string {
	types := make(map[string][]string)
	s, ok := a.Executor.Catalogue(nil).Server(server)
	if !ok {
		return types
	}
	t, ok := s.Tool(tool)
	if !ok {
		return types
	}
	var schema struct {
		Properties map[string]json.RawMessage
	}
	_ = json.Unmarshal(t.InputSchema, &schema) // without types all values are strings
	for name, property := range schema.Properties {
		types[name] = typesOf(property)
	}
	return types
}

// typesOf are the types in a schema, also in its anyOf and oneOf.
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

// object makes a JSON object of pairs. A value is a string if its type may be string or
// is unknown, otherwise it is JSON.
func object(pairs [][2]string, types map[string][]string) []byte {
	members := make(map[string]json.RawMessage, len(pairs))
	for _, pair := range pairs {
		key, value := pair[0], pair[1]
		known := types[key]
		if len(known) > 0 && !slices.Contains(known, "string") && json.Valid([]byte(value)) {
			members[key] = json.RawMessage(value)
			continue
		}
		members[key] = wire.Encode(value)
	}
	data, _ := json.Marshal(members) // the members are valid JSON
	return data
}
