package search

import (
	"encoding/json"
	"maps"
	"slices"
)

// maxSchemaDepth bounds how deeply nested parameters search reads.
const maxSchemaDepth = 4

// schemaNode has the parts of a JSON Schema that search reads. encoding/json skips a part of
// another type, such as a schema that is true or a tuple.
type schemaNode struct {
	Description string                 `json:"description"`
	Properties  map[string]*schemaNode `json:"properties"`
	Items       *schemaNode            `json:"items"`
	AnyOf       []*schemaNode          `json:"anyOf"`
	Enum        []string               `json:"enum"`
}

// readSchema calls param for every parameter name and text for every description and enum
// value in schema, sorted by name. It skips parts that do not parse.
func readSchema(schema json.RawMessage, param, text func(string)) {
	var n schemaNode
	// If there is an error, n only lacks some members.
	_ = json.Unmarshal(schema, &n)
	n.Description = "" // it is mostly the name of a generated class
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
	names := slices.AppendSeq(make([]string, 0, len(n.Properties)), maps.Keys(n.Properties))
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
