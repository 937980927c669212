package view

import (
	"encoding/json"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/pattern"
	"mcpx/internal/base/wire"
	"mcpx/internal/describe"
	"mcpx/internal/results"
)

// The names of the two tools, and of the variant of exec that calls only read-only tools.
const (
	InspectTool = "inspect"
	ExecTool    = "exec"
	ReadTool    = "exec_read"
)

// The schemas of the two tools. They are part of every request to a model, so they do not repeat the tools' descriptions. The
// member "arguments" has additionalProperties, because frameworks with a strict mode would otherwise turn it into an empty
// object.
const (
	inspectSchema = `{"type":"object","properties":{` +
		`"server_name":{"type":"string"},` +
		`"tool_name":{"type":"string","description":"one, or several with commas"},` +
		`"query":{"type":"string","description":"what you want to do"}}}`
	execSchema = `{"type":"object","properties":{` +
		`"server_name":{"type":"string"},` +
		`"tool_name":{"type":"string"},` +
		`"arguments":{"type":"object","additionalProperties":true},` +
		`"each":{"type":"array","items":{"type":"object","additionalProperties":true}},` +
		`"select":{"type":"string","description":"jq filter on the JSON result"},` +
		`"grep":{"type":"string","description":"regex: only matching lines"}},` +
		`"required":["server_name","tool_name"]}`
	// toolMeta asks Claude Code to load the tools immediately and to accept long results.
	toolMeta = `{"anthropic/alwaysLoad":true,"anthropic/maxResultSizeChars":500000}`
)

// shortNames replaces the names of arguments if the config has short_argument_names.
var shortNames = strings.NewReplacer(`"server_name"`, `"server"`, `"tool_name"`, `"tool"`, `"arguments"`, `"args"`)

// explanation matches a description in the schemas. These descriptions are removed for describe.Features.Brief, which is for
// clients that search for tools themselves: for them, the descriptions of inspect and exec contain the same information.
var explanation = pattern.New(`,"description":"[^"]*"`)

// Definition is the part of a tool's definition that is in every request to a model.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// readDescription is the description of exec_read.
const readDescription = "Like exec, for tools that only read; it refuses all others. Prefer it: it may run without asking the user."

// definitions returns the two tools, and exec_read if it is enabled.
func definitions(inspect, exec string, features describe.Features) []Definition {
	inspectSchema, execSchema := inspectSchema, execSchema
	if features.Brief {
		inspectSchema, execSchema = explanation.ReplaceAllString(inspectSchema, ""), explanation.ReplaceAllString(execSchema, "")
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

// Surface returns what mcpx adds to every request to a model, for a client with this name and these servers: the tools and the
// instructions.
func (v *TwoTools) Surface(snap *catalog.Snapshot, client string) ([]Definition, string) {
	shown := v.how(nil, client)
	list := shown.list(snap)
	return definitions(list.inspect, list.exec, shown.features), describe.Instructions(snap, shown.budget, shown.features)
}

// encodeTools returns the array for tools/list with the tools of mcpx itself. Their annotations depend on the tools in snap.
func encodeTools(snap *catalog.Snapshot, inspect, exec string, how shown) json.RawMessage {
	type tool struct {
		Title string `json:"title"` // for users; directories of servers require it
		Definition
		Annotations hints           `json:"annotations"`
		Meta        json.RawMessage `json:"_meta"`
	}
	two := definitions(inspect, exec, how.features)
	calls := hintsOf(snap)
	if how.saves {
		calls.ReadOnly, calls.Idempotent = false, false
	}
	all := []tool{
		{"Find tools", two[0], hints{ReadOnly: true, Idempotent: true}, json.RawMessage(toolMeta)},
		{"Call a tool", two[1], calls, json.RawMessage(toolMeta)},
	}
	if how.features.ReadDoor {
		all = append(all, tool{"Call a tool that only reads", two[2], hints{ReadOnly: true, OpenWorld: calls.OpenWorld}, json.RawMessage(toolMeta)})
	}
	return wire.Encode(all)
}

// hints are the annotations of one of mcpx's own tools. Clients rely on the annotations of exec for every call, so they must be
// true for every tool that exec can call.
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
		if s.Name == results.Server {
			continue // tools of the built-in server only read, or call tools of the other servers
		}
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
