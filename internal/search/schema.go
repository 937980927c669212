package search

import (
	"encoding/json"
	"slices"
)

// maxSchemaDepth bounds the nesting of the parameters that search reads.
const maxSchemaDepth = 4

// schemaNode has the parts of a JSON Schema that search reads. If a key has another type
// than here (a schema that is true, a tuple), encoding/json skips it.
type schemaNode struct {
	Description string                 `json:"description"`
	Properties  map[string]*schemaNode `json:"properties"`
	Items       *schemaNode            `json:"items"`
	AnyOf       []*schemaNode          `json:"anyOf"`
	Enum        []string               `json:"enum"`
}

// readSchema calls param for every parameter name and text for every
// description and value in schema, sorted by name. It skips parts that do not parse: a
// query can still find a tool with a broken schema by its name.
func readSchema(schema json.RawMessage, param, text func(string)) {
	if len(schema) == 0 {
		return
	}
	var n schemaNode
	// An error means only that n lacks some part.
	_ = json.Unmarshal(schema, &n)
	n.Description = "" // mostly the name of a generated class
	n.read(0, param, text)
}

// read reads n and the schemas in it; n may be nil.
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
