package executor

import (
	"context"
	"encoding/json"

	"mcpx/internal/arguments"
	"mcpx/internal/catalog"
	"mcpx/internal/pages"
)

// Builtin is the name of the server inside mcpx.
const Builtin = pages.Server

// builtin describes the server mcpx. It is not in the catalogue: models learn of it
// from the last line of a cut result.
func builtin() *catalog.Server {
	yes, no := true, false
	server := catalog.Server{
		Name: Builtin, State: catalog.Ready, Known: true, Transport: "built-in",
		Instructions: "Reads results that were too long to be shown whole.",
	}.WithTools([]catalog.Tool{{
		Name:        pages.Tool,
		Description: "Read on in a long result by its handle.",
		InputSchema: json.RawMessage(pages.Schema),
		Hints:       catalog.Hints{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no},
		Annotations: json.RawMessage(`{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}`),
	}})
	return &server
}

// readResult runs the one tool of the server mcpx.
func (e run) readResult(ctx context.Context, r *Request) (*Result, target, error) {
	t, err := e.find(ctx, r)
	if err == nil {
		t.arguments, t.notes, err = e.schemas.Read(r.Arguments, t.tool.InputSchema, true)
	}
	if err != nil {
		return nil, t, err
	}
	args, violation := pages.ParseArguments(t.arguments)
	switch {
	case violation != "":
	case args.Select == "":
		args.Select = r.Select
	case r.Select != "":
		violation = "/select: is given twice"
	}
	if violation != "" {
		return nil, t, arguments.Invalid(violation)
	}
	page, err := e.pages(r).Read(ctx, args)
	if err != nil {
		return nil, t, err
	}
	return onPage(page, r.Form.Always()), t, nil
}
