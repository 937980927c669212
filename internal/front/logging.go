package front

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"mcpx/internal/wire"
)

// levels are the log levels of MCP (RFC 5424), least severe first.
var levels = []mcp.LoggingLevel{
	mcp.LoggingLevelDebug, mcp.LoggingLevelInfo, mcp.LoggingLevelNotice, mcp.LoggingLevelWarning,
	mcp.LoggingLevelError, mcp.LoggingLevelCritical, mcp.LoggingLevelAlert, mcp.LoggingLevelEmergency,
}

// atLeast reports whether the log message params is as severe as least. One
// whose level is unknown passes.
func atLeast(params json.RawMessage, least mcp.LoggingLevel) bool {
	level := ""
	_ = wire.Fields(params, func(name string, value []byte) bool {
		if name == "level" {
			level, _ = wire.Text(value)
		}
		return true
	})
	at := slices.Index(levels, mcp.LoggingLevel(level))
	return at < 0 || at >= slices.Index(levels, least)
}

// logging passes log messages of upstreams on to a client that asked for them:
// by logging/setLevel, in the modern era with the request. nil where it did not.
func (f *Front) logging(ctx context.Context) func(json.RawMessage) {
	least := mcp.LoggingLevel("")
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
		least = info.LogLevel
	} else if session := f.sessions.get(sessionOf(ctx)); session != nil {
		least = session.level()
	}
	if least == "" {
		return nil
	}
	return func(params json.RawMessage) {
		if ctx.Err() != nil || !atLeast(params, least) {
			return
		}
		fields := make(map[string]any)
		_ = wire.Fields(params, func(name string, value []byte) bool {
			fields[name] = json.RawMessage(value)
			return true
		})
		if err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/message", fields); err != nil {
			f.log.Debug("log message not delivered", "err", err)
		}
	}
}
