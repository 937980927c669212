package view

import (
	"encoding/json"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
)

// native returns a tool's definition as its server sent it, but with the given name. SDKs refuse a whole list if they cannot
// parse one definition in it. So native leaves out the members that SDKs would refuse, or replaces them if they are required.
func native(t *catalog.Tool, name string) json.RawMessage {
	asSent, input := name == t.Name, false
	out := append(make([]byte, 0, len(t.Raw)+len(name)), '{')
	err := wire.Members(t.Raw, func(key string, written, value []byte) bool {
		switch {
		case key == "name":
			if !asSent {
				value = wire.Encode(name)
			}
		case key == "inputSchema":
			input = true
			if !objectSchema(value) {
				value, asSent = objectOf(value), false
			}
		case !understood(key, value):
			asSent = false
			return true
		}
		out = wire.AppendMember(out, written, value)
		return true
	})
	if !input {
		out, asSent = append(out, `,"inputSchema":{"type":"object"}`...), false
	}
	if asSent || err != nil {
		return t.Raw
	}
	return append(out, '}')
}

// understood reports whether SDKs can parse this member of a tool's definition. key is the name of the member, and value its
// JSON. It accepts all members that it does not know. It does not check the name and the inputSchema; native does that.
func understood(key string, value []byte) bool {
	var into any
	switch key {
	case "title", "description":
		return value[0] == '"'
	case "outputSchema":
		return objectSchema(value)
	case "annotations":
		into = &struct {
			Title *string
			catalog.Hints
		}{}
	case "icons":
		into = &[]struct{ Src string }{}
	case "execution", "_meta":
		into = &map[string]json.RawMessage{}
	default:
		return true
	}
	return string(value) != "null" && json.Unmarshal(value, into) == nil
}

// objectSchema reports whether SDKs accept this schema for arguments or results.
func objectSchema(raw []byte) bool {
	var schema struct {
		Type       string
		Properties map[string]json.RawMessage
		Required   []string
	}
	if raw[0] != '{' || json.Unmarshal(raw, &schema) != nil || schema.Type != "object" {
		return false
	}
	for _, property := range schema.Properties {
		if property[0] != '{' {
			return false
		}
	}
	return true
}

// objectOf returns a replacement for raw, an input schema that SDKs refuse. If only the type is missing, the replacement is raw
// with "type":"object" added, because arguments are always an object. Otherwise the replacement accepts any object.
func objectOf(raw []byte) []byte {
	const any = `{"type":"object"}`
	if raw[0] != '{' || len(raw) <= len("{}") {
		return []byte(any)
	}
	typed := append([]byte(`{"type":"object",`), raw[1:]...)
	if wire.Member(raw, "type") == nil && objectSchema(typed) {
		return typed
	}
	return []byte(any)
}
