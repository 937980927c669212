package view

import (
	"context"
	"encoding/json"

	"mcpx/internal/executor"
)

// exec calls a tool of the catalogue. The error is that of ctx.
func (v *TwoTools) exec(ctx context.Context, call Call, structured bool) (*executor.Result, error) {
	var server, tool, arguments, filter json.RawMessage
	fault := eachArgument(ExecTool, call.Arguments, func(name string, value json.RawMessage) bool {
		switch name {
		case "server_name":
			server = value
		case "tool_name":
			tool = value
		case "arguments":
			arguments = value
		case "select":
			filter = value
		default:
			return false
		}
		return true
	})
	if fault != nil {
		return fault.Result(structured), nil
	}
	r := executor.Request{
		Catalogue:  v.catalogue(call.Client),
		Arguments:  arguments,
		Client:     call.Client,
		Structured: structured,
		Meta:       call.Meta,
		OnProgress: call.OnProgress,
		OnLog:      call.OnLog,
		LogLevel:   call.LogLevel,
	}
	if r.Tool, fault = required("tool_name", tool); fault == nil {
		if r.Server, fault = required("server_name", server); fault == nil {
			r.Select, fault = optional("select", filter)
		} else if owner := v.executor.MissingServer(r.Catalogue, r.Tool); owner != nil && r.Server == "" && len(server) == 0 {
			fault = owner
		}
	}
	if fault != nil {
		return fault.Result(structured), nil
	}
	return v.executor.Exec(ctx, r)
}
