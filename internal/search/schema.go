package search

import (
	"encoding/json"
	"maps"
	"slices"
)

// maxSchemaDepth is how many levels below the top of a schema are read. A property, the items of an array and an alternative of
// anyOf are one level below the schema that contains them.
const maxSchemaDepth = 4

// schemaNode has the parts of a JSON Schema that this package reads. encoding/json skips a part that does not fit the type of
// the field, such as the schema "true", or a list of schemas as "items".
type schemaNode struct {
	Description string                 `json:"description"`
	Properties  map[string]*schemaNode `json:"properties"`
	Items       *schemaNode            `json:"items"`
	AnyOf       []*schemaNode          `json:"anyOf"`
	Enum        []string               `json:"enum"`
}

// readSchema calls the function param for every parameter name in a schema, and the function text for every description and
// enum value, except the description at the top. For a missing description, text gets "". The properties of an object are read
// in the order of their names. Parts of an unexpected type, and parts deeper than maxSchemaDepth, are skipped.
func readSchema(schema json.RawMessage, param, text func(string)) {
	var n schemaNode
	// The error is ignored: n only lacks the members that could not be read.
	_ = json.Unmarshal(schema, &n)
	n.Description = "" // the description at the top is usually only the name of a generated class
	n.read(0, param, text)
}

// read reads n and the schemas in n, like readSchema; n may be nil.
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
