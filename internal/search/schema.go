package search

import (
	"encoding/json"
	"slices"
)

// maxSchemaDepth is how deep nested parameters are read for their names.
const maxSchemaDepth = 4

// schemaNode is what search reads of a JSON Schema. Where a key has another
// type than here (a schema that is true, a tuple), encoding/json leaves it out
// and reads on.
type schemaNode struct {
	Description string                 `json:"description"`
	Properties  map[string]*schemaNode `json:"properties"`
	Items       *schemaNode            `json:"items"`
	AnyOf       []*schemaNode          `json:"anyOf"`
	Enum        []string               `json:"enum"`
}

// readSchema calls param for every parameter name and text for every
// description and value in schema, sorted by name. What does not parse is passed
// over: a tool with a broken schema can still be found by its name.
func readSchema(schema json.RawMessage, param, text func(string)) {
	if len(schema) == 0 {
		return
	}
	var n schemaNode
	// The error says no more than that something is missing in n.
	_ = json.Unmarshal(schema, &n)
	n.Description = "" // mostly the name of a generated class
	n.read(0, param, text)
}

// read reads n and what is in it; n may be nil.
func (n *schemaNode) read(depth int, param, text func(string)) {
	if n == nil || depth > maxSchemaDepth {
		return
	}
	text(n.Description)
	for _, e := range n.Enum {
		text(e)
	}
	names := make([]string, 0, len(n.Properties))
	for name := range n.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		param(name)
		n.Properties[name].read(depth+1, param, text)
	}
	n.Items.read(depth+1, param, text)
	for _, a := range n.AnyOf {
		a.read(depth+1, param, text)
	}
}
