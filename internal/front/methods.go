package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/request"
	"mcpx/internal/results"
	"mcpx/internal/view"
)

// method is an entry in the table of methods. The field answer is set only for requests, the field notice only for notifications.
type method struct {
	eras era
	// If kinds is not empty, the method exists only if the config leaves at least one of these kinds turned on.
	kinds []catalog.Kind
	// answer executes the request r and appends its result to out.
	answer func(f *Front, ctx context.Context, r *incoming, out []byte) ([]byte, *rpcError)
	// notice handles the notification m from a client.
	notice func(f *Front, s *session, from *caller.Client, m *message)
	// opens is true for initialize. Over stdio, all later messages wait until it is answered.
	opens bool
	// lasts is true for a long-lived request, which sends notifications until the client or mcpx ends it. A
	// shutdown does not wait for it.
	lasts bool
	// asks means that mcpx or a server may ask the client a question before the request is answered.
	asks bool
}

type era uint8

const (
	legacy era = 1 << iota
	modern
)

// methods is the table of methods: the requests and notifications of clients that mcpx knows.
var methods = map[string]*method{
	"initialize":                {eras: legacy, answer: (*Front).initialize, opens: true},
	"notifications/initialized": {eras: legacy, notice: func(_ *Front, s *session, _ *caller.Client, _ *message) { s.begin() }},
	"ping":                      {eras: legacy, answer: ping},
	"server/discover":           {eras: modern, answer: (*Front).discover},
	"logging/setLevel":          {eras: legacy, answer: (*Front).setLevel},
	"tools/list":                {eras: legacy | modern, answer: (*Front).listTools},
	"tools/call":                {eras: legacy | modern, answer: (*Front).callTool, asks: true},
	"resources/list":            {eras: legacy | modern, answer: listOf(catalog.Resources), kinds: []catalog.Kind{catalog.Resources}},
	"resources/templates/list":  {eras: legacy | modern, answer: listOf(catalog.ResourceTemplates), kinds: []catalog.Kind{catalog.Resources}},
	"resources/read":            {eras: legacy | modern, answer: (*Front).relay, kinds: []catalog.Kind{catalog.Resources}, asks: true},
	"resources/subscribe":       {eras: legacy, answer: (*Front).subscribe, kinds: []catalog.Kind{catalog.Resources}},
	"resources/unsubscribe":     {eras: legacy, answer: (*Front).unsubscribe, kinds: []catalog.Kind{catalog.Resources}},
	"prompts/list":              {eras: legacy | modern, answer: listOf(catalog.Prompts), kinds: []catalog.Kind{catalog.Prompts}},
	"prompts/get":               {eras: legacy | modern, answer: (*Front).relay, kinds: []catalog.Kind{catalog.Prompts}, asks: true},
	"completion/complete":       {eras: legacy | modern, answer: (*Front).relay, kinds: []catalog.Kind{catalog.Resources, catalog.Prompts}},
	"tasks/get":                 {eras: legacy | modern, answer: (*Front).relayTask},
	"tasks/result":              {eras: legacy, answer: (*Front).relayTask},
	"tasks/update":              {eras: modern, answer: (*Front).relayTask},
	"tasks/cancel":              {eras: legacy | modern, answer: (*Front).relayTask},
	"subscriptions/listen":      {eras: modern, answer: (*Front).listen, lasts: true},
	"notifications/progress":    {eras: legacy, notice: func(_ *Front, s *session, _ *caller.Client, m *message) { s.questions.progressed(m) }},
	"notifications/cancelled": {
		eras: legacy | modern, notice: func(f *Front, s *session, _ *caller.Client, m *message) {
			if !s.inflight.cancelled(m) { // the request may be open in another replica
				f.everyone(s, m)
			}
		},
	},
	mcp.MethodNotificationRootsListChanged: {
		eras: legacy, notice: func(f *Front, s *session, from *caller.Client, m *message) {
			f.pass(from, m)
			f.everyone(s, m)
		},
	},
}

// incoming is a request together with what its transport knows about it.
type incoming struct {
	*message
	client  *caller.Client
	session *session    // nil for a modern request over HTTP
	headers http.Header // the headers of a modern request over HTTP; otherwise nil
	// structured is the value of structuredHeader: it says whether the client wants structuredContent.
	structured view.StructuredPolicy
	// out sends notifications before the answer; nil for initialize over HTTP, and if the client accepts no event stream.
	out   sender
	event *request.Event // made by Front.answer, or for a suspended call by suspendedCalls.begin
	// modern only: the client's sessions with PerClient servers are lost, because the replica that had them has ended
	anew bool
	// release, if not nil, must be called once, when all work for the request has ended. For a suspended call, the call's own
	// goroutine calls it.
	release func()
}

// ownRequest holds a request together with its own client, so that one allocation is enough for both.
type ownRequest struct {
	incoming
	own caller.Client
}

// sender sends messages to the client, but no answers. It sends them before the answer to a request, or outside of any request.
type sender interface {
	// notify sends a notification. It does not block: if the client does not read, the notification is dropped.
	notify(method string, params json.RawMessage)
	// send sends a request to the client, or takes one back. It returns false if that is not possible, such as when the client does
	// not read.
	send(request []byte) bool
	// alive sends a keep-alive if the connection needs one, so that proxies do not close it.
	alive()
}

// response is the answer to a request.
type response struct {
	body []byte
	code int // the code of the error; 0 if the response is a result
}

// dispatch runs the method of a request.
func (f *Front) dispatch(ctx context.Context, r *incoming) (answer response) {
	defer f.recovered(r, func(err *rpcError) { answer = refuse(r.ID, err) })
	row := r.row
	switch {
	case row.answer == nil && r.Method != "" && row.notice == nil && f.view.Traits().Transparent:
		row = &method{eras: legacy | modern, answer: (*Front).relay, asks: true}
	case row.answer == nil, len(row.kinds) > 0 && !slices.ContainsFunc(row.kinds, f.view.Traits().Shows):
		return refuse(r.ID, &rpcError{code: mcp.METHOD_NOT_FOUND, message: "method " + r.Method + " not found"})
	case row.eras&r.era() == 0 && r.modern():
		return refuse(r.ID, &rpcError{code: mcp.METHOD_NOT_FOUND, message: r.Method + " was removed in protocol version " + mcp.ProtocolVersion20260728})
	case row.eras&r.era() == 0:
		return refuse(r.ID, &rpcError{code: mcp.METHOD_NOT_FOUND, message: r.Method + " needs protocol version " + mcp.ProtocolVersion20260728})
	}
	var out []byte
	written, _ := wire.Text(r.input.State) // written stays as the client sent it; unbind replaces r.input.State
	err := f.unbind(r, written)
	if err == nil {
		err = f.compareParams(ctx, r)
	}
	if err != nil {
		return refuse(r.ID, err)
	}
	if row.asks && r.modern() && (r.client.Answers() || r.input.State != nil) {
		out, err = f.suspended.answer(ctx, r, written, func(ctx context.Context, r *incoming) (result []byte, err *rpcError) {
			defer f.recovered(r, func(panicked *rpcError) { result, err = nil, panicked })
			return row.answer(f, ctx, r, nil)
		})
		out = append(responseHead(r.ID, "result"), out...)
	} else {
		out, err = row.answer(f, ctx, r, responseHead(r.ID, "result"))
	}
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

// relayed converts an upstream's error for the client. The code becomes INTERNAL_ERROR if the upstream's code is missing, is no
// integer, or is forbidden by the client's protocol revision. The message then also contains the upstream's code, if there is one.
func (r *incoming) relayed(rpc *wire.RPCError) *rpcError {
	e := &rpcError{code: int(rpc.Code), message: rpc.Message}
	if rpc.NoCode || rpc.OddCode != nil || r.modern() && forbidden(e.code) {
		e.code, e.message = mcp.INTERNAL_ERROR, rpc.Error()
	}
	if rpc.Data != nil {
		e.data = rpc.Data
	}
	return e
}

// forbidden reports whether revision 2026-07-28 forbids mcpx to relay a server's error code to a client. The revision reserves the
// codes -32099 to -32020, and replaces resourceNotFound. mcpx relays only one of the reserved codes, the one for a missing
// capability, because mcpx also relays the client's capabilities. The other codes are about the headers and the revision of mcpx's
// own request.
func forbidden(code int) bool {
	return code == resourceNotFound || code >= -32099 && code <= -32020 && code != mcp.MISSING_REQUIRED_CLIENT_CAPABILITY
}

// codeRefused is the error code for requests that mcpx does not carry out now, such as those that come too early, too late or
// too often. SDKs name this code "connection closed".
const codeRefused = -32000

// cancelled returns the error for a request whose context has ended.
func cancelled(ctx context.Context) *rpcError {
	return &rpcError{code: mcp.REQUEST_INTERRUPTED, message: "cancelled: " + context.Cause(ctx).Error()}
}

// tooMany returns the error for a request that would exceed a limit on sessions or messages. It is sent as a JSON-RPC error
// where possible, because clients show its message. For an HTTP error they show only the status.
func tooMany(over *request.LimitError) *rpcError {
	data := map[string]any{"code": results.CodeRateLimited, "retry_after": over.Seconds()}
	return &rpcError{code: codeRefused, message: over.Error(), data: data}
}

// refuse makes an error response. If id is nil, the response has the id null.
func refuse(id json.RawMessage, err *rpcError) response {
	out := append(responseHead(id, "error"), wire.Encode(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}{err.code, err.message, err.data})...)
	return response{append(out, '}'), err.code}
}

// responseHead returns the beginning of a response, up to the value of the member "result" or "error".
func responseHead(id json.RawMessage, member string) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	out := append(make([]byte, 0, len(id)+374), `{"jsonrpc":"2.0","id":`...) // the capacity is enough for a small answer
	out = append(append(out, id...), `,"`...)
	return append(append(out, member...), `":`...)
}

// notification encodes a JSON-RPC notification. It leaves out params that are nil or null, because JSON-RPC does not allow
// null.
func notification(method string, params json.RawMessage) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","method":`), wire.Encode(method)...)
	if params != nil && string(params) != "null" {
		out = append(append(out, `,"params":`...), params...)
	}
	return append(out, '}')
}

func unsupportedVersion(version string) *rpcError {
	e := mcp.UnsupportedProtocolVersionError{Version: version, Supported: mcp.ValidProtocolVersions}
	details := e.JSONRPCError().Error
	return &rpcError{details.Code, details.Message, details.Data}
}

func (f *Front) listTools(ctx context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
	var p struct{ Cursor string }
	if err := json.Unmarshal(orEmpty(r.Params), &p); err != nil || p.Cursor != "" {
		return nil, &rpcError{code: mcp.INVALID_PARAMS, message: "there is no such cursor; the whole list is one page"}
	}
	tools := f.view.Tools(ctx, r.client)
	if f.listsFirst(r) {
		r.event.Definitions = f.view.Saved(r.client)
	}
	out = append(append(out, `{"tools":`...), tools...)
	if r.modern() {
		out = append(out, `,"ttlMs":0,"cacheScope":"private"`...)
	}
	return f.complete(out, r, nil), nil
}

func (f *Front) setLevel(ctx context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
	var p struct{ Level mcp.LoggingLevel }
	if json.Unmarshal(orEmpty(r.Params), &p) != nil || !isLevel(p.Level) {
		return nil, &rpcError{code: mcp.INVALID_PARAMS, message: "no such level"}
	}
	if err := f.change(ctx, r.session, func(record *Session) { record.Level = p.Level }); err != nil {
		_, why := refused(err)
		return nil, why
	}
	return append(out, "{}"...), nil
}

// orEmpty returns params, or an empty object if there are none.
func orEmpty(params json.RawMessage) json.RawMessage {
	if params == nil || string(params) == "null" {
		return json.RawMessage("{}")
	}
	return params
}

func (f *Front) callTool(ctx context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
	name, ok := wire.Text(r.name)
	if !ok || name == "" {
		return nil, &rpcError{code: mcp.INVALID_PARAMS, message: "params.name must be the name of a tool"}
	}
	call := view.Call{From: r.from(), Name: name, Arguments: r.arguments, Structured: r.structured, Code: r.code}
	if !r.modern() && bytes.Contains(r.Params, []byte(`"task"`)) {
		if task := wire.Member(r.Params, "task"); len(task) > 0 && task[0] == '{' {
			call.Task = task
		}
	}
	result, err := f.view.Call(ctx, call)
	if unknown, ok := errors.AsType[*view.UnknownToolError](err); ok {
		return nil, &rpcError{code: mcp.INVALID_PARAMS, message: unknown.Message}
	}
	if rpc, ok := errors.AsType[*wire.RPCError](err); ok {
		return nil, r.relayed(rpc)
	}
	if err != nil {
		return nil, cancelled(ctx)
	}
	if result.IsError && r.event.Outcome == "" {
		r.event.Outcome = request.OutcomeToolError
	}
	if result.Whole == nil {
		if note := f.beganAnew(ctx, r); note != "" {
			result.Content = wire.AppendText(result.Content, note)
		}
	}
	return f.appendResult(out, result, r), nil
}

// sink returns the receivers of the progress and log messages that servers send during the request. A receiver is nil if the
// client does not want such messages, or cannot get any before the answer.
func (r *incoming) sink() (s request.Sink) {
	if r.out != nil && r.token != nil {
		s.Progress = func(params json.RawMessage) {
			r.out.notify("notifications/progress", wire.Set(params, "progressToken", r.token))
		}
	}
	if level, logs := r.minLevel(); r.out != nil && logs {
		s.Level = string(level)
		s.Log = func(params json.RawMessage) {
			if level, _ := r.minLevel(); atLeast(params, level) { // the client may have set a level since
				r.out.notify("notifications/message", params)
			}
		}
	}
	return s
}

// minLevel returns the lowest log level that the client wants for this request, empty if it has named none, and whether it gets log
// messages at all.
func (r *incoming) minLevel() (level mcp.LoggingLevel, logs bool) {
	if r.modern() || r.session == nil {
		return r.level, r.level != ""
	}
	return r.session.minLevel(), r.session.logs()
}
