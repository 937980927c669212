package view

import (
	"context"

	"mcpx/internal/results"
)

var (
	execNames      = []string{"server_name", "tool_name", "arguments", "select", "grep"}
	shortExecNames = []string{"server", "tool", "args", "select", "grep"}
)

// execArguments returns the advertised names of exec's arguments.
func (v *TwoTools) execArguments() []string {
	if v.current().ShortNames {
		return shortExecNames
	}
	return execNames
}

// exec calls a tool of the catalogue; for exec_read, a read-only one. The error is ctx's.
func (v *TwoTools) exec(ctx context.Context, call Call, form results.Format) (*results.Result, error) {
	names := v.execArguments()
	args, failure := readArguments(call.Name, call.Arguments, names)
	if failure != nil {
		v.registry.Need()
		return failure.Result(form.Always()), nil
	}
	r := call.request("", "", args[2])
	r.Scope, r.Catalogue, r.Format = v.scope(), v.catalogue(call.Client), form
	r.ReadOnly = call.Name == ReadTool
	if r.Tool, failure = required(names, 1, args[1]); failure == nil {
		if r.Server, failure = required(names, 0, args[0]); failure == nil {
			if r.Select, failure = optional(names[3], args[3]); failure == nil {
				r.Grep, failure = optional(names[4], args[4])
			}
		} else if owner := v.executor.MissingServer(r.Catalogue, r.Tool); owner != nil && r.Server == "" && len(args[0]) == 0 {
			failure = owner
		}
	} else if server, wrong := optional(names[0], args[0]); wrong == nil && len(args[1]) == 0 {
		if meant := v.executor.MissingTool(r.Catalogue, server); meant != nil {
			failure = meant
		}
	}
	v.needs(r.Server)
	if failure != nil {
		return failure.Result(form.Always()), nil
	}
	return v.executor.Exec(ctx, r)
}
