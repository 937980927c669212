package front

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"mcpx/internal/describe"
	"mcpx/internal/executor"
	"mcpx/internal/registry"
	"mcpx/internal/upstream"
	"mcpx/internal/wire"
)

// execArguments are the arguments of exec, as they were sent.
type execArguments struct {
	server, tool, arguments, filter json.RawMessage
}

// caller is who calls one of the tools, and how it is answered.
type caller struct {
	client     string // clientInfo.name
	session    string // empty where the era has none
	structured bool
	meta       []upstream.MetaMember
	progress   func(params json.RawMessage) // nil where it was not asked for
	log        func(params json.RawMessage) // likewise
}

// call runs one of the two tools; ok is false for an unknown name. The error is
// ctx's.
func (f *Front) call(ctx context.Context, c caller, name string, arguments json.RawMessage) (result *executor.Result, ok bool, err error) {
	f.needed()
	switch name {
	case InspectTool:
		return f.inspect(ctx, c, arguments), true, nil
	case ExecTool:
		result, err = f.exec(ctx, c, arguments)
		return result, true, err
	}
	return nil, false, nil
}

// handle is the handler of both tools where mcp-go does the protocol.
func (f *Front) handle(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	ctx, cancel := f.callContext(ctx)
	defer cancel()
	client, session := clientOf(ctx), sessionOf(ctx)
	if session == "" {
		// Nothing tells the clients of the modern era apart: each request is a
		// client of its own, so that nothing of one reaches another.
		session = "request " + strconv.FormatInt(f.requests.Add(1), 10)
		defer func() { go f.registry.ForgetClient(session) }() // ends when its sessions are closed
	}
	result, _, err := f.call(ctx, caller{
		client: client, session: session,
		structured: f.structured(client, request.Header),
		meta:       traceMeta(request.Params.Meta),
		progress:   f.progress(ctx, request.Params.Meta),
		log:        f.logging(ctx),
	}, request.Params.Name, request.Params.RawArguments)
	if err != nil {
		return nil, fmt.Errorf("cancelled: %w", context.Cause(ctx))
	}
	return toMCP(result), nil
}

func (f *Front) exec(ctx context.Context, c caller, arguments json.RawMessage) (*executor.Result, error) {
	var args execArguments
	fault := unpack(ExecTool, arguments, func(name string, value json.RawMessage) bool {
		switch name {
		case "server_name":
			args.server = value
		case "tool_name":
			args.tool = value
		case "arguments":
			args.arguments = value
		case "select":
			args.filter = value
		default:
			return false
		}
		return true
	})
	if fault != nil {
		return fault.Result(c.structured), nil
	}
	r := executor.Request{
		Arguments:  args.arguments,
		Client:     registry.Client{ID: c.session, Name: c.client},
		Structured: c.structured,
		Meta:       c.meta,
		OnProgress: c.progress,
		OnLog:      c.log,
	}
	if r.Server, fault = required("server_name", args.server); fault == nil {
		if r.Tool, fault = required("tool_name", args.tool); fault == nil {
			r.Select, fault = optional("select", args.filter)
		}
	}
	if fault != nil {
		return fault.Result(c.structured), nil
	}
	return f.executor.Exec(ctx, r)
}

// unpack calls take, which says whether it knows the name, for each argument of
// one of the two tools. Some models send
// the whole object as a string.
func unpack(tool string, raw json.RawMessage, take func(name string, value json.RawMessage) bool) *executor.Fault {
	if len(raw) > 0 && raw[0] == '"' {
		if text, ok := wire.Text(raw); ok {
			raw = json.RawMessage(text)
		}
	}
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var fault *executor.Fault
	err := wire.Fields(raw, func(name string, value []byte) bool {
		if !take(name, value) {
			fault = unknownArgument(tool, name)
		}
		return fault == nil
	})
	if err != nil && fault == nil {
		return misuse("/: the arguments of " + tool + " must be an object")
	}
	return fault
}

// unknownArgument refuses an argument that nobody would read: a tool called
// without what was meant for it can do harm.
func unknownArgument(tool, name string) *executor.Fault {
	known := []string{"server_name", "tool_name", "query"}
	if tool == ExecTool {
		known = []string{"server_name", "tool_name", "arguments", "select"}
	}
	violation := "/" + describe.Line(name, 60) + ": is unknown; " + tool + " takes " + strings.Join(known, ", ")
	if near := executor.Nearest(name, known); len(near) > 0 {
		violation = "/" + describe.Line(name, 60) + ": is unknown; did you mean " + near[0] + "?"
	}
	return misuse(violation)
}

// misuse is a fault of the call of inspect or exec itself.
func misuse(violation string) *executor.Fault {
	return (&executor.Fault{Code: executor.CodeValidation, Message: violation}).With("violations", []string{violation})
}

// optional reads an argument that may be a string or absent.
func optional(name string, raw json.RawMessage) (string, *executor.Fault) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	text, ok := wire.Text(raw)
	if !ok {
		return "", misuse("/" + name + ": must be a string")
	}
	return text, nil
}

func required(name string, raw json.RawMessage) (string, *executor.Fault) {
	text, fault := optional(name, raw)
	if fault == nil && text == "" {
		return "", misuse("/" + name + ": is missing; exec takes server_name, tool_name and arguments")
	}
	return text, fault
}

// traceMeta are the members of _meta that go on to the upstream: the trace
// context (SEP-414).
func traceMeta(meta *mcp.Meta) []upstream.MetaMember {
	if meta == nil {
		return nil
	}
	var members []upstream.MetaMember
	for _, name := range []string{"traceparent", "tracestate", "baggage"} {
		if value, ok := meta.AdditionalFields[name].(string); ok {
			members = append(members, upstream.MetaMember{Name: name, Value: value})
		}
	}
	return members
}

// progress passes the upstream's progress on under the client's own token; nil
// where the client gave none. Sending never blocks: a client that does not read
// loses progress, not the call.
func (f *Front) progress(ctx context.Context, meta *mcp.Meta) func(json.RawMessage) {
	if meta == nil || meta.ProgressToken == nil {
		return nil
	}
	token := encode(meta.ProgressToken)
	return func(params json.RawMessage) {
		if ctx.Err() != nil {
			return
		}
		fields := make(map[string]any)
		for _, member := range progressMembers(params, token) {
			fields[member.name] = member.value
		}
		err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", fields)
		if err != nil {
			f.log.Debug("progress not delivered", "err", err)
		}
	}
}

type member struct {
	name  string
	value json.RawMessage
}

// progressMembers are the params of a progress notification under another
// token.
func progressMembers(params, token json.RawMessage) []member {
	members := []member{{"progressToken", token}}
	_ = wire.Fields(params, func(name string, value []byte) bool {
		if name != "progressToken" {
			members = append(members, member{name, value})
		}
		return true
	})
	return members
}
