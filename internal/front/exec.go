package front

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/catalog"
	"mcpx/internal/executor"
	"mcpx/internal/plain"
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
	peer       string // see upstream.Client
	structured bool
	meta       []upstream.MetaMember
	progress   func(params json.RawMessage) // nil where it was not asked for
	log        func(params json.RawMessage) // likewise
	least      mcp.LoggingLevel             // of log
}

// call runs one of the two tools; ok is false for an unknown name. The error is
// ctx's. What panics costs this call only.
func (f *Front) call(ctx context.Context, c caller, name string, arguments json.RawMessage) (result *executor.Result, ok bool, err error) {
	defer func() {
		if what := recover(); what != nil {
			f.log.Error("panic in a call", "tool", name, "panic", what, "stack", string(debug.Stack()))
			fault := &executor.Fault{Code: executor.CodeExecution, Message: "internal error of mcpx; its log says more. The call may have been executed"}
			result, ok, err = fault.Result(c.structured), true, nil
		}
	}()
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

// unknownTool says, to a client that calls a tool which is not one of the two, how
// it is called: models take the names in the catalogue for their own.
func (f *Front) unknownTool(id json.RawMessage, name string) []byte {
	text := "there is no tool " + strconv.Quote(plain.Line(name, 60)) + " here, only inspect and exec"
	snap := f.registry.Snapshot()
	for i := range snap.Servers {
		s := &snap.Servers[i]
		if _, ok := s.Tool(name); ok && s.State != catalog.Disabled {
			text += `; call exec with {"server_name":` + string(wire.Encode(s.Name)) + `,"tool_name":` + string(wire.Encode(name)) + `,"arguments":{…}}`
			break
		}
	}
	return fault(id, mcp.INVALID_PARAMS, text)
}

// handle is the handler of both tools where mcp-go does the protocol: calls that
// are odd enough to be left to it, and that it did not refuse.
func (f *Front) handle(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return nil, errors.New("the params of tools/call were not understood: name is a string, arguments and _meta are objects")
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
		Client:     &upstream.Client{ID: c.session, Name: c.client, Peer: c.peer},
		Structured: c.structured,
		Meta:       c.meta,
		OnProgress: c.progress,
		OnLog:      c.log,
		LogLevel:   string(c.least),
	}
	if r.Tool, fault = required("tool_name", args.tool); fault == nil {
		if r.Server, fault = required("server_name", args.server); fault == nil {
			r.Select, fault = optional("select", args.filter)
		} else if owner := f.executor.MissingServer(r.Tool); owner != nil && r.Server == "" && len(args.server) == 0 {
			fault = owner
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
	violation := "/" + plain.Line(name, 60) + ": is unknown; " + tool + " takes " + strings.Join(known, ", ")
	if near := executor.Nearest(name, known); len(near) > 0 {
		violation = "/" + plain.Line(name, 60) + ": is unknown; did you mean " + near[0] + "?"
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
