package front

import (
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/wire"
	"mcpx/internal/upstream"
)

// atLeast reports whether a log message with these params is as severe as least. An
// unknown level passes.
func atLeast(params json.RawMessage, least mcp.LoggingLevel) bool {
	at := slices.Index(upstream.LogLevels, mcp.LoggingLevel(wire.MemberText(params, "level")))
	return at < 0 || at >= slices.Index(upstream.LogLevels, least)
}

// isLevel reports whether the protocol has such a level.
func isLevel(level mcp.LoggingLevel) bool { return slices.Contains(upstream.LogLevels, level) }
