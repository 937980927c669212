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
	"mcpx/internal/request"
)

// LogLevels are the log levels of MCP (RFC 5424), the least severe first.
var LogLevels = []mcp.LoggingLevel{
	mcp.LoggingLevelDebug, mcp.LoggingLevelInfo, mcp.LoggingLevelNotice, mcp.LoggingLevelWarning,
	mcp.LoggingLevelError, mcp.LoggingLevelCritical, mcp.LoggingLevelAlert, mcp.LoggingLevelEmergency,
}

// levelPatience is how long a call waits until a legacy server has accepted the log level, so that the client
// misses no log message.
const levelPatience = 500 * time.Millisecond

// signed adds the server's name to the params of a log message: in front of the logger's name and, as the origin, in
// _meta.
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
	return s.originated(append(append(out, rest...), '}'))
}

// originated returns the params of a notification that mcpx passes on. The params are valid UTF-8, and have the
// server's name in _meta.
func (s *Spec) originated(params json.RawMessage) json.RawMessage {
	return request.Originated(s.Name, validText(params))
}

// level is the log level of a legacy server. The session's lock guards it.
type level struct {
	settable bool
	// set is the index in LogLevels of the level that mcpx has set; len(LogLevels) if it has set none.
	set int
}

// logLevel returns the log level that the caller requires; debug if that is no level of MCP. It returns an empty string if
// the caller wants no logs, or those that the server chooses to send.
func (r *call) logLevel() mcp.LoggingLevel {
	level := mcp.LoggingLevel(r.Sink.Level)
	switch {
	case r.Sink.Log == nil || level == "":
		return ""
	case !slices.Contains(LogLevels, level):
		return mcp.LoggingLevelDebug
	}
	return level
}

// setLevel sets the log level of a legacy server that declares the capability logging, unless the server already logs at that
// level or more. There is one level for the whole session, so mcpx only ever changes it to log more. (A modern request carries
// its own level.)
func (s *session) setLevel(ctx context.Context, r *call) {
	least := r.logLevel()
	at := slices.Index(LogLevels, least)
	s.mu.Lock()
	if at < 0 || !s.level.settable || at >= s.level.set || s.closed {
		s.mu.Unlock()
		return
	}
	s.level.set = at
	answered := make(chan struct{})
	s.notes.all.Go(func() { // the goroutine ends with session.close at the latest, which waits for it
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
