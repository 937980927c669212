package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/wire"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// noCapabilities is a member of _meta, after a comma. It says that the client has no capabilities. It is for the modern requests
// that mcpx makes itself in a session without an owner.
const noCapabilities = `,"` + mcp.MetaKeyClientCapabilities + `":{}`

// meta returns the members that r adds to _meta, each preceded by a comma.
func (r *call) meta(id int64, modern bool) (meta []byte, err error) {
	if modern {
		capabilities := r.Client.Relayed()
		meta = make([]byte, 0, len(noCapabilities)+len(capabilities)+64) // with room for a progress token
		meta = append(append(meta, noCapabilities[:len(noCapabilities)-2]...), capabilities...)
	}
	if r.Sink.Progress != nil {
		meta = strconv.AppendInt(append(meta, `,"progressToken":`...), id, 10)
	}
	if level := r.logLevel(); level != "" && modern {
		meta = fmt.Appendf(meta, ",%q:%q", mcp.MetaKeyLogLevel, level)
	}
	for _, member := range r.Meta {
		value, err := json.Marshal(member.Value)
		if err != nil {
			return nil, transport.NotSent(fmt.Errorf("_meta of the request: %w", err))
		}
		meta = append(append(wire.AppendQuoted(append(meta, ','), member.Name), ':'), value...)
	}
	return meta, nil
}

// call sends r and returns the raw result. If ctx ends after r was sent, call cancels r at the server.
func (s *session) call(ctx context.Context, r *call) (json.RawMessage, error) {
	id := s.newID()
	meta, err := r.meta(id, s.Modern)
	if err != nil {
		return nil, err
	}
	params := r.Params
	if s.Modern {
		params = r.Input.With(params)
	}
	out, err := s.encode(id, r.Method, params, s.Modern, meta)
	if err != nil {
		return nil, err
	}
	out.Again = r.again
	s.setLevel(ctx, r)
	s.listenFor(id, r)
	defer s.unlisten(id, false)
	out.Answered = func() { s.unlisten(id, false) }
	answer, err := s.link.Request(ctx, out)
	result, err := s.result(answer, err)
	if err == nil {
		return result, nil
	}
	if rpc, ok := errors.AsType[*wire.RPCError](err); ok && r.Client.OpensURLsOf(rpc) {
		s.questions.visitAll(rpc.Data, r.Client)
	}
	if ctx.Err() != nil && !errors.Is(err, transport.ErrNotSent) {
		r.told = true
		s.cancelled(id, context.Cause(ctx).Error())
		s.unlisten(id, true)
	}
	if noise, ok := errors.AsType[*transport.NoiseError](err); ok && s.shared() {
		noise.First = "not shown, as it may be meant for another client"
	}
	return nil, err
}

// do sends a request that mcpx makes itself, and returns the raw result. If ctx ends after the request was sent, do cancels it at
// the server.
func (s *session) do(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	id := s.newID()
	result, err := s.doAs(ctx, id, method, params, s.Modern)
	if err != nil && ctx.Err() != nil && !errors.Is(err, transport.ErrNotSent) {
		s.cancelled(id, context.Cause(ctx).Error())
	}
	return result, err
}

// doAs sends a request that mcpx makes itself, in the modern or the legacy form, and returns the raw result. Unlike do, doAs does
// not cancel the request when ctx ends. The handshake uses doAs, because its requests must not be cancelled, and because the era of
// the session is not negotiated yet.
func (s *session) doAs(ctx context.Context, id int64, method string, params json.RawMessage, modern bool) (json.RawMessage, error) {
	meta := ""
	if owner := s.spec.owner(); modern && owner != nil { // the capabilities of this client decide what the lists contain
		meta = noCapabilities[:len(noCapabilities)-2] + string(owner.Relayed())
	} else if modern {
		meta = noCapabilities
	}
	r, err := s.encode(id, method, params, modern, []byte(meta))
	if err != nil {
		return nil, err
	}
	answer, err := s.link.Request(ctx, r)
	return s.result(answer, err)
}

// result returns the raw result from the link's answer. The result is valid JSON and valid UTF-8. If the server answered with a
// JSON-RPC error, result returns a *RPCError; if with invalid JSON, an *AnswerError. If err is not nil, result returns err.
func (s *session) result(answer wire.Message, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	if !answer.UTF8 {
		// The JSON decoders accept invalid UTF-8, but clients of mcpx may not.
		answer.Result = bytes.ToValidUTF8(answer.Result, []byte("\ufffd"))
		answer.Error = bytes.ToValidUTF8(answer.Error, []byte("\ufffd"))
	}
	if len(answer.Error) > 0 {
		return nil, wire.ReadRPCError(answer.Error)
	}
	if !answer.Valid && !wire.Valid(answer.Result) {
		return nil, &request.AnswerError{Reason: "the result is not valid JSON: " + s.spec.Secrets.LineOf(answer.Result, 100)}
	}
	return answer.Result, nil
}

// encode builds the JSON of a request. params is a JSON object or nil. meta are further members of _meta, each
// preceded by a comma.
func (s *session) encode(id int64, method string, params json.RawMessage, modern bool, meta []byte) (transport.Outgoing, error) {
	params = flat(params)
	var preamble []byte
	if modern {
		preamble = s.preamble
	} else if len(meta) > 0 {
		meta = meta[1:]
	}
	out := make([]byte, 0, len(params)+len(preamble)+len(meta)+len(method)+96)
	out = strconv.AppendInt(append(out, `{"jsonrpc":"2.0","id":`...), id, 10)
	out = wire.AppendQuoted(append(out, `,"method":`...), method)
	start := len(out)
	if len(params) > 0 || len(preamble) > 0 || len(meta) > 0 {
		out = append(out, `,"params":`...)
		start = len(out)
		out = appendParams(out, params, preamble, meta)
	}
	r := transport.Outgoing{ID: id, Method: method, Message: append(out, '}')}
	if int64(len(r.Message)) > s.spec.MaxMessage {
		return transport.Outgoing{}, transport.NotSent(&request.TooLargeError{Limit: s.spec.MaxMessage, Request: true})
	}
	if modern && s.link.Traits().Headers {
		r.Header = s.header(method, out[start:])
	}
	return r, nil
}

// flat returns value without line breaks, as each message must be one line.
func flat(value []byte) []byte {
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		return value
	}
	var out bytes.Buffer
	_ = json.Compact(&out, value) // this cannot fail, as value is valid JSON
	return out.Bytes()
}

// appendParams appends the object params to out. If preamble or meta is not empty, the object gets a member _meta that has the
// members of both.
func appendParams(out, params, preamble, meta []byte) []byte {
	if len(preamble) == 0 && len(meta) == 0 {
		return append(out, params...)
	}
	inner := bytes.TrimSpace(params)
	if len(inner) >= 2 {
		inner = bytes.TrimSpace(inner[1 : len(inner)-1])
	}
	out = append(append(out, '{'), inner...)
	if len(inner) > 0 {
		out = append(out, ',')
	}
	out = append(append(append(out, `"_meta":{`...), preamble...), meta...)
	return append(out, "}}"...)
}

// header returns the HTTP headers that revision 2026-07-28 requires for a request (SEP-2243).
func (s *session) header(method string, params []byte) http.Header {
	header := http.Header{mcp.HeaderMethod: {method}, mcp.HeaderProtocolVersion: {modernVersion}}
	var name string
	named := true
	switch {
	case method == string(mcp.MethodToolsCall): // mcp.ExtractHeaderName would decode the arguments too, which is not needed
		name = wire.MemberText(params, "name")
	case strings.HasPrefix(method, "tasks/"):
		name = wire.MemberText(params, "taskId")
	default:
		name, named = mcp.ExtractHeaderName(mcp.MCPMethod(method), params)
	}
	if named {
		encoded, _ := mcp.EncodeHeaderValue(name)
		header[mcp.HeaderName] = []string{encoded}
	}
	if method != string(mcp.MethodToolsCall) {
		return header
	}
	if tool := s.headerTool(name); tool != nil {
		for name, value := range mcp.GenerateParamHeaders(tool, params) {
			header.Set(name, value)
		}
	}
	return header
}
