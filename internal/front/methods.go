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

// method is a row of the table of methods. A method of requests has answer, one
// of notifications has notice.
type method struct {
	eras era
	// answer appends the result to out.
	answer func(f *Front, ctx context.Context, r *request, out []byte) ([]byte, *rpcError)
	notice func(o *inflight, m *message)
	// opens says that the request opens the session that all others of the legacy
	// era need. Over stdio what follows it waits for its answer.
	opens bool
	// lasts says that the answer comes when the client, or the server, ends the
	// request, so that nothing waits for it; notifications come before.
	lasts bool
}

type era uint8

const (
	legacy era = 1 << iota
	modern
)

// methods are all that clients may send.
var methods = map[string]method{
	"initialize":              {eras: legacy, answer: (*Front).initialize, opens: true},
	"ping":                    {eras: legacy, answer: (*Front).greet},
	"server/discover":         {eras: modern, answer: (*Front).greet},
	"logging/setLevel":        {eras: legacy, answer: (*Front).setLevel},
	"tools/list":              {eras: legacy | modern, answer: (*Front).listTools},
	"tools/call":              {eras: legacy | modern, answer: (*Front).callTool},
	"subscriptions/listen":    {eras: modern, answer: (*Front).listen, lasts: true},
	"notifications/cancelled": {eras: legacy | modern, notice: (*inflight).cancelled},
}

// request is a message that wants an answer, with what its transport knows.
type request struct {
	*message
	client  *upstream.Client
	session *session // nil in the modern era over HTTP
	// structured is what the request says of structuredContent beside its body.
	structured view.StructuredPolicy
	// out takes what comes before the answer; nil where the client takes nothing.
	out outlet
}

// outlet takes what belongs to a request and comes before its answer.
type outlet interface {
	// notify sends a notification. It does not block: a client that does not read
	// loses it.
	notify(method string, params json.RawMessage)
	// alive shows what stands between that the connection is in use.
	alive()
}

// response is the answer to a request.
type response struct {
	body []byte
	code int // of its error; 0 = it has a result
}

// answer runs the method of a request. The response has the id as the client
// wrote it.
func (f *Front) answer(ctx context.Context, r *request) response {
	row := methods[r.Method]
	switch {
	case row.answer == nil:
		return refuse(r.ID, &rpcError{code: mcp.METHOD_NOT_FOUND, message: "method " + r.Method + " not found"})
	case row.eras&r.era() == 0 && r.modern():
		return refuse(r.ID, &rpcError{code: mcp.METHOD_NOT_FOUND, message: r.Method + " was removed in protocol version " + mcp.ProtocolVersion20260728})
	case row.eras&r.era() == 0:
		return refuse(r.ID, &rpcError{code: mcp.METHOD_NOT_FOUND, message: r.Method + " needs protocol version " + mcp.ProtocolVersion20260728})
	}
	out, err := row.answer(f, ctx, r, responseHead(r.ID, "result"))
	if err != nil {
		return refuse(r.ID, err)
	}
	return response{body: append(out, '}')}
}

func (m *message) era() era {
	if m.modern() {
		return modern
	}
	return legacy
}

// rpcError is a JSON-RPC error.
type rpcError struct {
	code    int
	message string
	data    any
}

// codeRefused is that of requests which come too late, too early, or are too many:
// "connection closed", as SDKs have it.
const codeRefused = -32000

// refuse is the response with an error. The id is null where there is none.
func refuse(id json.RawMessage, err *rpcError) response {
	out := append(responseHead(id, "error"), wire.Encode(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}{err.code, err.message, err.data})...)
	return response{append(out, '}'), err.code}
}

// responseHead is a response up to the value of its member.
func responseHead(id json.RawMessage, member string) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	out := append(make([]byte, 0, len(id)+640), `{"jsonrpc":"2.0","id":`...) // a small answer fits
	out = append(append(out, id...), `,"`...)
	return append(append(out, member...), `":`...)
}

// notification is a JSON-RPC notification. params may be nil.
func notification(method string, params json.RawMessage) []byte {
	note := append([]byte(`{"jsonrpc":"2.0","method":`), wire.Encode(method)...)
	if params != nil {
		note = append(append(note, `,"params":`...), params...)
	}
	return append(note, '}')
}

func unsupportedVersion(version string) *rpcError {
	e := mcp.UnsupportedProtocolVersionError{Version: version, Supported: mcp.ValidProtocolVersions}
	details := e.JSONRPCError().Error
	return &rpcError{details.Code, details.Message, details.Data}
}

// listTools answers tools/list.
func (f *Front) listTools(ctx context.Context, r *request, out []byte) ([]byte, *rpcError) {
	var p struct{ Cursor *string }
	if err := json.Unmarshal(orEmpty(r.Params), &p); err != nil || p.Cursor != nil {
		return nil, &rpcError{code: mcp.INVALID_PARAMS, message: "there is no such cursor; the whole list is one page"}
	}
	tools := f.view.Tools(ctx, r.client)
	out = append(append(out, `{"tools":`...), tools...)
	if r.modern() {
		out = append(out, `,"ttlMs":0,"cacheScope":"private"`...)
	}
	return f.complete(out, r, nil), nil
}

// setLevel answers logging/setLevel.
func (f *Front) setLevel(_ context.Context, r *request, out []byte) ([]byte, *rpcError) {
	var p struct{ Level mcp.LoggingLevel }
	if json.Unmarshal(orEmpty(r.Params), &p) != nil || !isLevel(p.Level) {
		return nil, &rpcError{code: mcp.INVALID_PARAMS, message: "no such level"}
	}
	r.session.level.Store(p.Level)
	return append(out, "{}"...), nil
}

func orEmpty(params json.RawMessage) json.RawMessage {
	if params == nil {
		return json.RawMessage("{}")
	}
	return params
}

// callTool answers tools/call.
func (f *Front) callTool(ctx context.Context, r *request, out []byte) ([]byte, *rpcError) {
	name, ok := wire.Text(r.name)
	if !ok || name == "" {
		return nil, &rpcError{code: mcp.INVALID_PARAMS, message: "params.name must be the name of a tool"}
	}
	call := view.Call{Client: r.client, Name: name, Arguments: r.arguments, Structured: r.structured, Meta: r.trace}
	if r.out != nil && r.token != nil {
		call.OnProgress = func(params json.RawMessage) { r.out.notify("notifications/progress", withToken(params, r.token)) }
	}
	if least := r.least(); r.out != nil && least != "" {
		call.LogLevel = string(least)
		call.OnLog = func(params json.RawMessage) {
			if atLeast(params, least) {
				r.out.notify("notifications/message", params)
			}
		}
	}
	result, err := f.view.Call(ctx, call)
	if unknown, ok := errors.AsType[*view.UnknownToolError](err); ok {
		return nil, &rpcError{code: mcp.INVALID_PARAMS, message: unknown.Message}
	}
	if err != nil {
		return nil, &rpcError{code: mcp.REQUEST_INTERRUPTED, message: "cancelled: " + context.Cause(ctx).Error()}
	}
	return f.appendResult(out, result, r), nil
}

// least is the least severe level of the log messages that the client wants with a
// request, empty where it wants none.
func (r *request) least() mcp.LoggingLevel {
	if r.modern() || r.session == nil {
		return r.level
	}
	level, _ := r.session.level.Load().(mcp.LoggingLevel)
	return level
}

// withToken are the params of a progress notification under another token.
func withToken(params, token json.RawMessage) json.RawMessage {
	out := append([]byte(`{"progressToken":`), token...)
	_ = wire.Members(params, func(name string, written, value []byte) bool {
		if name != "progressToken" {
			out = append(append(append(append(out, ','), written...), ':'), value...)
		}
		return true
	})
	return append(out, '}')
}
