package front

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/describe"
)

// The schemas of the two tools. They are part of every model request: what the
// description says is not said again.
const (
	inspectSchema = `{"type":"object","properties":{` +
		`"server_name":{"type":"string"},` +
		`"tool_name":{"type":"string","description":"one, or several with commas"},` +
		`"query":{"type":"string","description":"what you want to do"}}}`
	execSchema = `{"type":"object","properties":{` +
		`"server_name":{"type":"string"},` +
		`"tool_name":{"type":"string"},` +
		`"arguments":{"type":"object"},` +
		`"select":{"type":"string","description":"jq filter on the JSON result"}},` +
		`"required":["server_name","tool_name"]}`
)

func (f *Front) inspectTool(description string) mcp.Tool {
	tool := mcp.NewToolWithRawSchema(InspectTool, description, json.RawMessage(inspectSchema))
	tool.Annotations = mcp.ToolAnnotation{
		ReadOnlyHint: mcp.ToBoolPtr(true), DestructiveHint: mcp.ToBoolPtr(false),
		IdempotentHint: mcp.ToBoolPtr(true), OpenWorldHint: mcp.ToBoolPtr(false),
	}
	tool.Meta = toolMeta()
	return tool
}

func (f *Front) execTool(h hints) mcp.Tool {
	tool := mcp.NewToolWithRawSchema(ExecTool, describe.Exec(f.view("").features), json.RawMessage(execSchema))
	tool.Annotations = mcp.ToolAnnotation{
		ReadOnlyHint: mcp.ToBoolPtr(h.readOnly), DestructiveHint: mcp.ToBoolPtr(h.destructive),
		IdempotentHint: mcp.ToBoolPtr(h.idempotent), OpenWorldHint: mcp.ToBoolPtr(h.openWorld),
	}
	tool.Meta = toolMeta()
	return tool
}

// Definition is what a model carries of one tool in every request.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// Surface is what the model of a client carries of mcpx.
func (f *Front) Surface(client string) []Definition {
	var list []Definition
	for _, tool := range f.tools(client) {
		list = append(list, Definition{tool.Name, tool.Description, tool.RawInputSchema})
	}
	return list
}
