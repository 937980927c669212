package front

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/wire"
)

// callTool answers tools/call without decoding more than the envelope. ok is
// false where mcp-go shall answer.
func (s *stdioServer) callTool(ctx context.Context, m wire.Message) (answer []byte, ok bool) {
	call, ok := readCall(m.Params)
	if !ok || (call.modern && call.client == nil) {
		return nil, false
	}
	if call.client != nil {
		s.session.SetClientInfo(*call.client)
	}
	c := caller{client: s.session.GetClientInfo().Name, session: s.session.SessionID(), meta: call.meta}
	c.structured = s.front.structured(c.client, nil)
	if call.token != nil {
		c.progress = func(params json.RawMessage) { s.progress(params, call.token) }
	}
	result, known, err := s.front.call(ctx, c, call.name, call.arguments)
	switch {
	case !known:
		return nil, false
	case err != nil:
		return fault(m.ID, mcp.REQUEST_INTERRUPTED, "cancelled: "+err.Error()), true
	}
	return reply(m.ID, "result", s.front.encodeResult(result, call.modern)), true
}

// progress queues a progress notification. It does not block: a client that
// does not read loses progress, not the call.
func (s *stdioServer) progress(params, token json.RawMessage) {
	note := []byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":`)
	for i, member := range progressMembers(params, token) {
		separator := byte(',')
		if i == 0 {
			separator = '{'
		}
		note = append(append(note, separator), encode(member.name)...)
		note = append(append(note, ':'), member.value...)
	}
	if !s.session.queue(append(note, '}', '}')) {
		s.front.log.Debug("progress dropped, the client does not read")
	}
}
