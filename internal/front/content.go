package front

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/executor"
	"mcpx/internal/wire"
)

// rawContent is a content block as raw JSON, of whatever kind. The embedded
// type makes it one of mcp-go's, which are sealed.
type rawContent struct {
	mcp.TextContent
	raw json.RawMessage
}

// MarshalJSON implements json.Marshaler.
func (c rawContent) MarshalJSON() ([]byte, error) { return c.raw, nil }

// toMCP makes mcp-go's result out of ours without decoding its parts.
func toMCP(r *executor.Result) *mcp.CallToolResult {
	out := &mcp.CallToolResult{
		Content:              make([]mcp.Content, len(r.Content)),
		RawStructuredContent: r.Structured,
		IsError:              r.IsError,
	}
	for i, block := range r.Content {
		out.Content[i] = rawContent{raw: block}
	}
	if len(r.Meta) > 0 && r.Meta[0] == '{' {
		members := make(map[string]any)
		_ = wire.Fields(r.Meta, func(key string, value []byte) bool {
			members[key] = json.RawMessage(value)
			return true
		})
		out.Meta = &mcp.Meta{AdditionalFields: members}
	}
	return out
}
