package view

import (
	"context"
	"encoding/json"
	"strings"

	"mcpx/internal/arguments"
	"mcpx/internal/base/wire"
	"mcpx/internal/executor"
	"mcpx/internal/results"
)

var (
	execNames      = []string{"server_name", "tool_name", "arguments", "each", "select", "grep"}
	shortExecNames = []string{"server", "tool", "args", "each", "select", "grep"}
)

// execArguments returns the names of exec's arguments that tools/list shows.
func (v *TwoTools) execArguments() []string {
	if v.current().ShortNames {
		return shortExecNames
	}
	return execNames
}

// exec handles a call of exec or exec_read: it calls a tool of the catalogue, which for exec_read must be read-only. The
// errors are those of [executor.Executor.Exec].
func (v *TwoTools) exec(ctx context.Context, call Call, form results.Format) (*results.Result, error) {
	names := v.execArguments()
	g, failure := readArguments(call.Name, call.Arguments, names)
	r := call.request("", "", g.args[2])
	if failure == nil {
		r.Scope, r.Catalogue, r.Format = v.scope(), v.catalogue(call.Client), form
		r.ReadOnly, r.References = call.Name == ReadTool, true
		r.Beside = executor.Beside{Arguments: g.unknown, Violation: g.unknownError}
		failure = v.readCall(&r, names, &g)
	}
	v.needs(r.Server)
	if failure != nil {
		return failure.Result(form.Always()), nil
	}
	return v.executor.Exec(ctx, r)
}

// readCall reads which tool exec should call, and how. If only a server or only a tool is given, and the given name has the
// form "server.tool", readCall splits it.
func (v *TwoTools) readCall(r *executor.Request, names []string, g *given) (failure *results.Failure) {
	for i, text := range []*string{&r.Server, &r.Tool, nil, nil, &r.Select, &r.Grep} {
		if text == nil {
			continue
		}
		if *text, failure = optional(names[i], g.args[i]); failure != nil {
			return failure
		}
	}
	if failure = readEach(r, g.args[3]); failure != nil {
		return failure
	}
	if (r.Server == "") != (r.Tool == "") {
		if server, tool, ok := v.executor.Qualified(r, r.Server+r.Tool); ok {
			r.Server, r.Tool = server, tool
		}
	}
	switch {
	case g.unknown != nil && (r.Server == "" || r.Tool == ""):
		return g.unknownFailure()
	case r.Tool == "":
		return missing(names, 1)
	case r.Server == "":
		if owner := v.executor.MissingServer(r, names[0]); owner != nil {
			return owner
		}
		return missing(names, 0)
	}
	return nil
}

// missing returns the failure of a call of exec without one of its arguments.
func missing(names []string, which int) *results.Failure {
	return results.Invalid("/" + names[which] + ": is missing; exec takes " + names[0] + ", " + names[1] + " and " + names[2])
}

// readEach parses the argument named "each": a list, or a reference to one (see executor.Request.EachFrom). The argument may be
// missing.
func readEach(r *executor.Request, raw json.RawMessage) *results.Failure {
	if text, ok := wire.Text(raw); ok {
		raw = json.RawMessage(strings.TrimSpace(text))
	} else if len(raw) > 0 && raw[0] == '{' && arguments.Refers(raw) {
		r.EachFrom = raw
		return nil
	}
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	each, violation := executor.ReadEach(raw)
	if violation != "" {
		return results.Invalid(violation)
	}
	r.Each = each
	return nil
}
