package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/delay"
	"mcpx/internal/base/wire"
)

// LogLevels are the log levels of MCP (RFC 5424), least severe first.
var LogLevels = []mcp.LoggingLevel{
	mcp.LoggingLevelDebug, mcp.LoggingLevelInfo, mcp.LoggingLevelNotice, mcp.LoggingLevelWarning,
	mcp.LoggingLevelError, mcp.LoggingLevelCritical, mcp.LoggingLevelAlert, mcp.LoggingLevelEmergency,
}

// levelPatience is how long a call waits until a legacy server has taken the log
// level, so that it says nothing less from the beginning.
const levelPatience = 500 * time.Millisecond

// signed are the params of a log message, with the name of the server before that of its
// logger.
func (s *Spec) signed(params json.RawMessage) json.RawMessage {
	name, rest := s.Name, []byte{}
	_ = wire.Members(params, func(key string, written, value []byte) bool {
		if logger, ok := wire.Text(value); key == "logger" && ok {
			name += "/" + logger
		} else if key != "logger" {
			rest = append(append(append(append(rest, ','), written...), ':'), value...)
		}
		return true
	})
	out := wire.AppendQuoted([]byte(`{"logger":`), name)
	return validText(append(append(out, rest...), '}'))
}

// level is the log level of a legacy server, under the session's lock.
type level struct {
	settable bool
	// told is the index in LogLevels of the last level that mcpx set; the length of LogLevels before the first.
	told int
}

// logLevel is the level that a server is asked for with the request, empty where
// nobody wants to hear of it.
func (r *call) logLevel() mcp.LoggingLevel {
	level := mcp.LoggingLevel(r.Sink.Level)
	switch {
	case r.Sink.Log == nil:
		return ""
	case !slices.Contains(LogLevels, level):
		return mcp.LoggingLevelDebug
	}
	return level
}

// tellLevel tells a legacy server the log level that the request wants, unless it
// was told that or less already: it has one level for the whole session, which
// therefore only falls. (In the modern era each call says its own.)
func (s *session) tellLevel(ctx context.Context, r *call) {
	least := r.logLevel()
	at := slices.Index(LogLevels, least)
	s.mu.Lock()
	if at < 0 || !s.level.settable || at >= s.level.told || s.closed {
		s.mu.Unlock()
		return
	}
	s.level.told = at
	answered := make(chan struct{})
	s.notes.all.Go(func() { // ends with close at the latest, which waits for it
		defer close(answered)
		ctx, cancel := context.WithTimeout(s.notes.ctx, noteTime)
		defer cancel()
		if _, err := s.do(ctx, string(mcp.MethodSetLogLevel), fmt.Appendf(nil, `{"level":%q}`, least)); err != nil {
			s.spec.Logger.Debug("setting the log level", "err", s.spec.Secrets.Line(err.Error(), 300))
		}
	})
	s.mu.Unlock()
	delay.Until(ctx, levelPatience, answered, nil)
}
