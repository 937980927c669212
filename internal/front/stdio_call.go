package front

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/executor"
	"mcpx/internal/upstream"
	"mcpx/internal/wire"
)

// callTool answers tools/call without decoding more than the envelope. ok is
// false where mcp-go shall say what is wrong with the request.
func (s *stdioServer) callTool(ctx context.Context, m wire.Message) (answer []byte, ok bool) {
	var name string
	var arguments, meta json.RawMessage
	err := wire.Fields(m.Params, func(key string, value []byte) bool {
		switch key {
		case "name":
			_ = json.Unmarshal(value, &name)
		case "arguments":
			arguments = value
		case "_meta":
			meta = value
		case "task":
			name = "" // mcp-go refuses it
		}
		return true
	})
	if err != nil || name == "" {
		return nil, false
	}
	c := caller{client: s.session.GetClientInfo().Name, session: s.session.SessionID()}
	var modern bool
	if len(meta) > 0 {
		if modern = s.readMeta(meta, &c); modern && c.client == "" {
			return nil, false
		}
	}
	c.structured = s.front.structured(c.client, nil)
	result, known, err := s.front.call(ctx, c, name, arguments)
	switch {
	case !known:
		return nil, false
	case err != nil:
		return fault(m.ID, mcp.REQUEST_INTERRUPTED, "cancelled: "+err.Error()), true
	}
	return reply(m.ID, "result", s.front.encodeResult(result, modern)), true
}

// readMeta reads what mcpx needs of a request's _meta, and reports whether the
// request is of the modern era.
func (s *stdioServer) readMeta(meta json.RawMessage, c *caller) (modern bool) {
	_ = wire.Fields(meta, func(key string, value []byte) bool {
		switch key {
		case mcp.MetaKeyProtocolVersion:
			var version string
			modern = json.Unmarshal(value, &version) == nil && mcp.IsModernProtocol(version)
		case mcp.MetaKeyClientInfo:
			var info mcp.Implementation
			if json.Unmarshal(value, &info) == nil {
				c.client = info.Name
				s.session.SetClientInfo(info)
			}
		case "progressToken":
			token := append(json.RawMessage(nil), value...)
			c.progress = func(params json.RawMessage) { s.progress(params, token) }
		case "traceparent", "tracestate", "baggage":
			c.meta = append(c.meta, upstream.MetaMember{Name: key, Value: json.RawMessage(value)})
		}
		return true
	})
	return modern
}

// progress queues a progress notification. It does not block: a client that
// does not read loses progress, not the call.
func (s *stdioServer) progress(params, token json.RawMessage) {
	fields := make(map[string]any)
	for _, member := range progressMembers(params, token) {
		fields[member.name] = member.value
	}
	note := mcp.JSONRPCNotification{
		JSONRPC: mcp.JSONRPC_VERSION,
		Notification: mcp.Notification{
			Method: "notifications/progress",
			Params: mcp.NotificationParams{AdditionalFields: fields},
		},
	}
	select {
	case s.session.notes <- note:
	default:
		s.front.log.Debug("progress dropped, the client does not read")
	}
}

// encodeResult is a tool result as JSON. In the modern era it says that it is
// complete, and who answers (SEP-2322, SEP-2575).
func (f *Front) encodeResult(r *executor.Result, modern bool) json.RawMessage {
	size := len(r.Structured) + len(r.Meta) + 128
	for _, block := range r.Content {
		size += len(block) + 1
	}
	out := append(make([]byte, 0, size), `{"content":[`...)
	for i, block := range r.Content {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, block...)
	}
	out = append(out, ']')
	if r.Structured != nil {
		out = append(append(out, `,"structuredContent":`...), r.Structured...)
	}
	if r.IsError {
		out = append(out, `,"isError":true`...)
	}
	meta := r.Meta
	if modern {
		out = append(out, `,"resultType":"complete"`...)
		meta = f.identified(meta)
	}
	if len(meta) > 0 {
		out = append(append(out, `,"_meta":`...), meta...)
	}
	return append(out, '}')
}

// identified adds mcpx as the server to a _meta that names none.
func (f *Front) identified(meta json.RawMessage) json.RawMessage {
	const key = "io.modelcontextprotocol/serverInfo"
	named := false
	out := []byte{'{'}
	if len(meta) > 0 && meta[0] == '{' {
		_ = wire.Fields(meta, func(name string, value []byte) bool {
			named = named || name == key
			out = append(append(append(out, encode(name)...), ':'), value...)
			out = append(out, ',')
			return true
		})
	}
	if named {
		return meta
	}
	out = append(append(out, encode(key)...), `:{"name":"mcpx","version":`...)
	return append(append(out, encode(f.options.Version)...), '}', '}')
}
