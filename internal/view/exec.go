package view

import (
	"context"

	"mcpx/internal/executor"
)

var execArguments = []string{"server_name", "tool_name", "arguments", "select"}

// exec calls a tool of the catalogue. The error is that of ctx.
func (v *TwoTools) exec(ctx context.Context, call Call, structured bool) (*executor.Result, error) {
	args, fault := readArguments(ExecTool, call.Arguments, execArguments)
	if fault != nil {
		return fault.Result(structured), nil
	}
	r := executor.Request{
		Catalogue:  v.catalogue(call.Client),
		Arguments:  args[2],
		Client:     call.Client,
		Structured: structured,
		Meta:       call.Meta,
		OnProgress: call.OnProgress,
		OnLog:      call.OnLog,
		LogLevel:   call.LogLevel,
	}
	if r.Tool, fault = required("tool_name", args[1]); fault == nil {
		if r.Server, fault = required("server_name", args[0]); fault == nil {
			r.Select, fault = optional("select", args[3])
		} else if owner := v.executor.MissingServer(r.Catalogue, r.Tool); owner != nil && r.Server == "" && len(args[0]) == 0 {
			fault = owner
		}
	}
	if fault != nil {
		return fault.Result(structured), nil
	}
	return v.executor.Exec(ctx, r)
}
