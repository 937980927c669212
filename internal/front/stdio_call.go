package front

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/upstream"
	"mcpx/internal/view"
	"mcpx/internal/wire"
)

// callTool answers tools/call without decoding more than the envelope. ok is
// false where mcp-go shall answer.
func (s *stdioServer) callTool(ctx context.Context, m wire.Message) (answer []byte, ok bool) {
	call, ok := readCall(m.Params)
	if !ok || (call.modern() && !call.served()) {
		return nil, false
	}
	if call.client != nil {
		s.session.SetClientInfo(*call.client)
	}
	c := view.Call{
		Client: &upstream.Client{Name: s.session.GetClientInfo().Name, ID: s.session.SessionID()},
		Name:   call.name, Arguments: call.arguments, Meta: call.trace,
	}
	if call.token != nil {
		c.OnProgress = func(params json.RawMessage) { s.progress(params, call.token) }
	}
	if least := s.logLevel(call); least != "" {
		c.LogLevel = string(least)
		c.OnLog = func(params json.RawMessage) { s.logged(params, least) }
	}
	result, err := s.front.view.Call(ctx, c)
	unknown, _ := errors.AsType[*view.UnknownToolError](err)
	switch {
	case unknown != nil:
		return fault(m.ID, mcp.INVALID_PARAMS, unknown.Message), true
	case err != nil:
		return fault(m.ID, mcp.REQUEST_INTERRUPTED, "cancelled: "+context.Cause(ctx).Error()), true
	}
	return reply(m.ID, "result", s.front.encodeResult(result, call.modern())), true
}

// logLevel is the level of log messages that the client wants with a call,
// empty where it wants none.
func (s *stdioServer) logLevel(call rawCall) mcp.LoggingLevel {
	if call.modern() {
		return call.level
	}
	level, _ := s.session.least.Load().(mcp.LoggingLevel)
	return level
}

func (s *stdioServer) logged(params json.RawMessage, least mcp.LoggingLevel) {
	if !atLeast(params, least) {
		return
	}
	s.notify("notifications/message", params)
}

// progress queues a progress notification.
func (s *stdioServer) progress(params, token json.RawMessage) {
	s.notify("notifications/progress", withToken(params, token))
}

// notify queues a notification that belongs to a call: it is written before the
// call's answer. It does not block: a client that does not read loses
// notifications, not the call.
func (s *stdioServer) notify(method string, params json.RawMessage) {
	if !s.session.queue(flat(notification(method, params))) {
		s.front.log.Debug("notification dropped, the client does not read", "method", method)
	}
}
