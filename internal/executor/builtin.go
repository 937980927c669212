package executor

import (
	"context"
	"encoding/json"

	"mcpx/internal/arguments"
	"mcpx/internal/base/catalog"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// Builtin is the name of the server inside mcpx.
const Builtin = results.Server

// builtin describes the server mcpx, and reader as much of it as the catalogue may name
// (Reader): of the rest models learn from the results that want it.
func builtin() (all, reader *catalog.Server) {
	yes, no := true, false
	server := catalog.Server{
		Name: Builtin, State: catalog.Ready, Known: true, Listed: true, Transport: "built-in",
		Instructions: "Reads results that were too long to be shown whole, or took too long to be waited for, and the resources and prompts of the servers.",
	}
	tool := func(name, description, schema string) catalog.Tool {
		return catalog.Tool{
			Name: name, Description: description, InputSchema: json.RawMessage(schema),
			Hints:       catalog.Hints{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no},
			Annotations: json.RawMessage(`{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}`),
		}
	}
	var reading []catalog.Tool
	for _, one := range readingTools {
		reading = append(reading, tool(one[0], one[1], one[2]))
	}
	named := server.WithTools(reading)
	named.Instructions = "Resources and prompts of the servers"
	server = server.WithTools(append([]catalog.Tool{
		tool(results.Tool, "Read on in a long result by its handle.", results.Schema),
		tool(waitTool, "Wait for the result of a call that is still running, by its handle.", waitSchema),
	}, reading...))
	return &server, &named
}

// builtinCall runs a tool of the server mcpx, at the end of the chain as any other.
func (e run) builtinCall(ctx context.Context, r *Request) (*results.Result, target, error) {
	t, err := e.find(ctx, r)
	if err == nil {
		t.arguments, t.notes, err = e.schemas.Read(r.Arguments, t.tool.InputSchema, true)
	}
	if err != nil {
		return nil, t, err
	}
	var result *results.Result
	_, err = e.registry.Send(ctx, &request.Request{
		From: r.From, To: t.server, Tool: t.tool, Method: "tools/call", Params: request.ToolParams(r.Tool, t.arguments), Part: r.Part,
		Serve: func(ctx context.Context, _ *request.Request) (json.RawMessage, error) {
			result, err = e.runBuiltin(ctx, r, t)
			return nil, err
		},
	})
	return result, t, err
}

func (e run) runBuiltin(ctx context.Context, r *Request, t target) (result *results.Result, err error) {
	switch r.Tool {
	case waitTool:
		result, err = e.waitResult(ctx, r, t.arguments)
	case listTool, readTool, promptTool:
		result, err = e.reading(ctx, r, t)
	case results.Tool:
		result, err = e.readResult(ctx, r, t.arguments)
	default:
		read := *r
		read.Tool, t.arguments = readTool, e.skillURI(r.Catalogue, r.Tool)
		result, err = e.reading(ctx, &read, t)
	}
	return result, err
}

// readResult runs the tool read_result. Its select and grep may stand beside its
// arguments, as those of exec.
func (e run) readResult(ctx context.Context, r *Request, arg json.RawMessage) (*results.Result, error) {
	args, violation := results.ParseArguments(arg)
	for _, one := range []struct {
		name   string
		own    *string
		beside string
	}{{"select", &args.Select, r.Select}, {"grep", &args.Grep, r.Grep}} {
		switch {
		case *one.own == "":
			*one.own = one.beside
		case one.beside != "" && violation == "":
			violation = "/" + one.name + ": is given twice"
		}
	}
	if violation != "" {
		return nil, arguments.Invalid(violation)
	}
	page, err := e.pages(r).Read(ctx, args)
	if err != nil {
		return nil, err
	}
	return results.OnPage(page, r.Form.Always()), nil
}
