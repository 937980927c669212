package view

import (
	"encoding/json"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/describe"
)

// The names of the two tools, and of the one for calls that only read.
const (
	InspectTool = "inspect"
	ExecTool    = "exec"
	ReadTool    = "exec_read"
)

// The schemas of the two tools. They are part of every model request, so they do not
// repeat the descriptions of the tools. Frameworks with a strict mode make "an empty
// object" of an object without properties, unless additionalProperties is there.
const (
	inspectSchema = `{"type":"object","properties":{` +
		`"server_name":{"type":"string"},` +
		`"tool_name":{"type":"string","description":"one, or several with commas"},` +
		`"query":{"type":"string","description":"what you want to do"}}}`
	execSchema = `{"type":"object","properties":{` +
		`"server_name":{"type":"string"},` +
		`"tool_name":{"type":"string"},` +
		`"arguments":{"type":"object","additionalProperties":true},` +
		`"select":{"type":"string","description":"jq filter on the JSON result"},` +
		`"grep":{"type":"string","description":"regex: only matching lines"}},` +
		`"required":["server_name","tool_name"]}`
	// For clients that search for tools themselves: what describe.Features.Brief leaves out
	// stands in the descriptions.
	briefInspectSchema = `{"type":"object","properties":{` +
		`"server_name":{"type":"string"},` +
		`"tool_name":{"type":"string"},` +
		`"query":{"type":"string"}}}`
	briefExecSchema = `{"type":"object","properties":{` +
		`"server_name":{"type":"string"},` +
		`"tool_name":{"type":"string"},` +
		`"arguments":{"type":"object","additionalProperties":true},` +
		`"select":{"type":"string"},` +
		`"grep":{"type":"string"}},` +
		`"required":["server_name","tool_name"]}`
	// toolMeta asks Claude Code to load the tools at once and to let long results
	// through (design 7).
	toolMeta = `{"anthropic/alwaysLoad":true,"anthropic/maxResultSizeChars":500000}`
)

// shortNames replaces the names of arguments where short_argument_names is set.
var shortNames = strings.NewReplacer(`"server_name"`, `"server"`, `"tool_name"`, `"tool"`, `"arguments"`, `"args"`)

// Definition is the part of a tool that is in every model request.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// readDescription is the description of exec_read.
const readDescription = "Like exec, for tools that only read; it refuses all others. Prefer it: it may run without asking the user."

// definitions are the two tools with these descriptions, and exec_read where it is wanted.
func definitions(inspect, exec string, features describe.Features) []Definition {
	inspectSchema, execSchema := inspectSchema, execSchema
	if features.Brief {
		inspectSchema, execSchema = briefInspectSchema, briefExecSchema
	}
	if features.ShortNames {
		inspectSchema, execSchema = shortNames.Replace(inspectSchema), shortNames.Replace(execSchema)
	}
	all := []Definition{
		{InspectTool, inspect, json.RawMessage(inspectSchema)},
		{ExecTool, exec, json.RawMessage(execSchema)},
	}
	if features.ReadDoor {
		all = append(all, Definition{ReadTool, readDescription, json.RawMessage(execSchema)})
	}
	return all
}

// Surface is the part of mcpx in every model request of a client of that name, if these
// were all the servers: its tools and its instructions.
func (v *TwoTools) Surface(snap *catalog.Snapshot, client string) ([]Definition, string) {
	shown := v.current().profile(client).shown
	list := shown.list(snap)
	return definitions(list.inspect, list.exec, shown.features), describe.Instructions(snap, shown.budget, shown.features)
}

// encodeTools is the two tools as tools/list has them.
func encodeTools(snap *catalog.Snapshot, inspect, exec string, features describe.Features) json.RawMessage {
	type tool struct {
		Title string `json:"title"` // for people: directories of servers want one
		Definition
		Annotations hints           `json:"annotations"`
		Meta        json.RawMessage `json:"_meta"`
	}
	two := definitions(inspect, exec, features)
	all := []tool{
		{"Find tools", two[0], hints{ReadOnly: true, Idempotent: true}, json.RawMessage(toolMeta)},
		{"Call a tool", two[1], hintsOf(snap), json.RawMessage(toolMeta)},
	}
	if features.ReadDoor {
		all = append(all, tool{"Call a tool that only reads", two[2], hints{ReadOnly: true, OpenWorld: hintsOf(snap).OpenWorld}, json.RawMessage(toolMeta)})
	}
	return wire.Encode(all)
}

// hints are the annotations of exec. They are true of every tool that exec can call.
type hints struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

func hintsOf(snap *catalog.Snapshot) hints {
	h := hints{ReadOnly: true, Idempotent: true}
	known := 0
	for i := range snap.Servers {
		s := &snap.Servers[i]
		if s.State != catalog.Disabled && !s.Known {
			return hints{Destructive: true, OpenWorld: true}
		}
		for j := range s.Tools {
			t := s.Tools[j].Hints
			known++
			h.ReadOnly = h.ReadOnly && t.IsReadOnly()
			h.Destructive = h.Destructive || t.IsDestructive()
			h.Idempotent = h.Idempotent && (t.IsIdempotent() || t.IsReadOnly())
			h.OpenWorld = h.OpenWorld || t.IsOpenWorld()
		}
	}
	if known == 0 {
		return hints{Destructive: true, OpenWorld: true}
	}
	return h
}
