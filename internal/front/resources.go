package front

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/request"
	"mcpx/internal/resources"
	"mcpx/internal/view"
)

// This file has the methods for resources (without subscriptions), prompts and completions, and the methods whose requests mcpx
// passes on to one server.

// listOf returns the func that answers the list request of a kind, with one page of its items.
func listOf(kind catalog.Kind) func(f *Front, ctx context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
	return func(f *Front, ctx context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
		var p struct{ Cursor string }
		page, ok := resources.Page{}, json.Unmarshal(orEmpty(r.Params), &p) == nil
		if ok {
			page, ok = f.view.List(ctx, r.client, kind, p.Cursor)
		}
		if !ok {
			return nil, &rpcError{code: mcp.INVALID_PARAMS, message: "there is no such cursor; begin again without one"}
		}
		out = append(append(append(out, `{"`...), kind...), `":[`...)
		for i, item := range page.Items {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, item...)
		}
		out = append(out, ']')
		if page.Next != "" {
			out = wire.AppendQuoted(append(out, `,"nextCursor":`...), page.Next)
		}
		if r.modern() {
			out = append(out, `,"ttlMs":0,"cacheScope":"private"`...)
		}
		return f.complete(out, r, nil), nil
	}
}

// relay passes a request on to the server that has the named resource, prompt or task. In a transparent view, a request with a
// method that mcpx does not know goes to the view's only server.
func (f *Front) relay(ctx context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
	result, err := f.view.Send(ctx, &request.Request{From: r.from(), Method: r.Method, Params: r.Params})
	if err == nil {
		return f.appendRelayed(out, result, r)
	}
	if ctx.Err() != nil {
		return nil, cancelled(ctx)
	}
	return nil, f.resourceError(r, err)
}

// relayTask passes a request about a task on to the server that runs the task. It refuses a modern client that has not declared
// the tasks extension.
func (f *Front) relayTask(ctx context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
	if r.modern() && !r.client.RunsTasks() {
		return nil, needsTasks(r.Method)
	}
	return f.relay(ctx, r, out)
}

// needsTasks is the error for a modern client that asks for something of the tasks extension without having declared it.
func needsTasks(what string) *rpcError {
	needed := map[string]any{"extensions": map[string]any{caller.TasksExtension: struct{}{}}}
	return &rpcError{
		code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, message: what + " needs the capability " + caller.TasksExtension,
		data: map[string]any{"requiredCapabilities": needed},
	}
}

// appendRelayed appends the result of a server. It changes only requestState (see bound) and the members in which the eras
// differ. The contents of a resource are marked as private to the client even if the server says otherwise, because the server
// does not know that mcpx has several clients.
func (f *Front) appendRelayed(out []byte, result json.RawMessage, r *incoming) ([]byte, *rpcError) {
	var meta, kind, ttl json.RawMessage
	size := len(out)
	err := wire.Members(result, func(key string, written, value []byte) bool {
		switch {
		case key == "resultType":
			kind = value
		case key == "_meta":
			if value[0] == '{' { // SDKs refuse a result whose _meta is anything else
				meta = value
			}
		case key == "ttlMs" && r.Method == string(mcp.MethodResourcesRead) && r.modern():
			ttl = value
		case key == "requestState":
			out = append(append(append(append(out, ','), written...), ':'), f.bound(r, value)...)
		case key == "cacheScope" && r.Method == string(mcp.MethodResourcesRead) && r.modern():
		default:
			out = append(append(append(append(out, ','), written...), ':'), value...)
		}
		return true
	})
	if kind == nil {
		kind = json.RawMessage(`"complete"`)
	}
	text, _ := wire.Text(kind)
	if err != nil || text != "complete" && !r.modern() {
		return nil, &rpcError{code: mcp.INTERNAL_ERROR, message: "the server's answer to " + r.Method + " is no result of this protocol version"}
	}
	if r.modern() {
		out = append(append(out, `,"resultType":`...), kind...)
		if text == "complete" && r.Method == string(mcp.MethodResourcesRead) {
			if ttl == nil {
				ttl = json.RawMessage("0")
			}
			out = append(append(append(out, `,"ttlMs":`...), ttl...), `,"cacheScope":"private"`...)
		}
		meta = f.identified(meta)
	}
	if meta != nil {
		out = append(append(out, `,"_meta":`...), meta...)
	}
	if len(out) == size {
		return append(out, "{}"...), nil
	}
	out[size] = '{' // replaces the first comma
	return append(out, '}'), nil
}

// resourceNotFound is the error code for an unknown resource in the legacy era. The modern era uses
// INVALID_PARAMS.
const resourceNotFound = -32002

// resourceError returns the error of a resource, prompt or task request, in the form of the client's era.
func (f *Front) resourceError(r *incoming, err error) *rpcError {
	unknown := resourceNotFound
	if r.modern() {
		unknown = mcp.INVALID_PARAMS
	}
	if uri, ok := errors.AsType[*catalog.URIError](err); ok {
		return &rpcError{code: unknown, message: uri.Error(), data: map[string]string{"uri": uri.URI}}
	}
	if rpc, ok := errors.AsType[*wire.RPCError](err); ok {
		e := r.relayed(rpc)
		if rpc.Code == resourceNotFound {
			e.code, e.message = unknown, rpc.Message
		} else if e.code == mcp.INVALID_PARAMS && r.Method == string(mcp.MethodResourcesRead) && wire.Member(rpc.Data, "uri") != nil {
			e.code = unknown
		}
		return e
	}
	if failed, ok := errors.AsType[*view.Failure](err); ok {
		return &rpcError{code: mcp.INTERNAL_ERROR, message: failed.Message, data: failed.Data}
	}
	return &rpcError{code: mcp.INVALID_PARAMS, message: err.Error()} // err is mostly a PromptError or a ParamsError
}
