package search

import (
	"encoding/json"
	"sort"
)

// maxSchemaDepth is how deep nested parameters are read for their names.
const maxSchemaDepth = 4

// schemaNode is what search reads of a JSON Schema.
type schemaNode struct {
	Title       string                     `json:"title"`
	Description string                     `json:"description"`
	Properties  map[string]json.RawMessage `json:"properties"`
	Items       json.RawMessage            `json:"items"`
	Enum        []json.RawMessage          `json:"enum"`
}

// readSchema calls param for every parameter name and text for every
// description and value that schema lists, sorted by name. What does not parse is
// passed over: a tool with a broken schema can still be found by its name.
func readSchema(schema json.RawMessage, depth int, param, text func(string)) {
	if len(schema) == 0 || schema[0] != '{' || depth > maxSchemaDepth {
		return
	}
	var n schemaNode
	if json.Unmarshal(schema, &n) != nil && n.Properties == nil {
		return
	}
	if depth > 0 {
		text(n.Description)
		for _, e := range n.Enum {
			var s string
			if json.Unmarshal(e, &s) == nil {
				text(s)
			}
		}
	}
	names := make([]string, 0, len(n.Properties))
	for name := range n.Properties {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		param(name)
		readSchema(n.Properties[name], depth+1, param, text)
	}
	readSchema(n.Items, depth+1, param, text)
}
