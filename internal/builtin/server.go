// Package builtin is the server mcpx, inside of the process: it reads on in long results, waits for calls that still run, and
// gives clients that have tools alone the resources, prompts and skills of all servers.
package builtin

import (
	"context"
	"encoding/json"

	"mcpx/internal/arguments"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
	"mcpx/internal/resources"
	"mcpx/internal/results"
)

// Name is the name of the server.
const Name = results.Server

// WaitTool is the tool that waits for the result of a call that is still running.
const WaitTool = "wait_result"

const waitSchema = `{"type":"object","properties":{"handle":{"type":"string"}},"required":["handle"],"additionalProperties":false}`

// Server is the server mcpx. New makes it; its fields are set before its first use, and never change. Safe for concurrent
// use.
type Server struct {
	// Resources are the resources and prompts that the caller of a request may see.
	Resources func(q *request.Request) *resources.Servers
	// Shown says which of these clients are shown at all.
	Shown func() (resources, prompts bool)
	// NoServer is the error for a server that the catalogue does not have.
	NoServer func(name string, seen *catalog.Snapshot) error
	// Journal gets the events of what servers are asked. May be nil.
	Journal *request.Journal

	all, reader *catalog.Server
}

// New makes the server.
func New() *Server {
	s := &Server{}
	s.all, s.reader = described()
	return s
}

// described is the server mcpx, and reader as much of it as the catalogue may name
// (Reader): of the rest models learn from the results that want it.
func described() (all, reader *catalog.Server) {
	yes, no := true, false
	server := catalog.Server{
		Name: Name, State: catalog.Ready, Known: true, Listed: true, Transport: "built-in",
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
		tool(WaitTool, "Wait for the result of a call that is still running, by its handle.", waitSchema),
	}, reading...))
	return &server, &named
}

// Server is the server for a caller that sees the catalogue, with the skills in it.
func (s *Server) Server(seen *catalog.Snapshot) *catalog.Server {
	return s.withSkills(s.all, s.skills(seen))
}

// All is the server without skills.
func (s *Server) All() *catalog.Server { return s.all }

// Reader is the server as the catalogue names it: with the tools that read what the servers of seen have beside tools,
// or nil if they have nothing to read.
func (s *Server) Reader(seen *catalog.Snapshot) *catalog.Server {
	if skills := s.skills(seen); len(skills) > 0 {
		return s.withSkills(s.reader, skills)
	}
	resources, prompts := s.Shown()
	for i := range seen.Servers {
		items := seen.Servers[i].Items
		readable := len(items.Of(catalog.Resources)) + len(items.Of(catalog.ResourceTemplates))
		if resources && readable > 0 || prompts && len(items.Of(catalog.Prompts)) > 0 {
			return s.reader
		}
	}
	return nil
}

// Caller is how the caller of one request takes results.
type Caller struct {
	results.Pages
	Form results.Format
	// Select and Grep stand beside the arguments, as those of exec.
	Select, Grep string
}

// Reads reports whether a tool reads from kept results: what it returns has its form already.
func Reads(tool string) bool { return tool == results.Tool || tool == WaitTool }

// Verbatim reports whether what a tool reads may be edited, and stays as it is.
func Verbatim(tool string) bool { return tool != listTool }

// Serve makes the handler of the caller's request to the server.
func (s *Server) Serve(c Caller) request.Handler {
	return func(ctx context.Context, q *request.Request) (json.RawMessage, error) {
		given := wire.Member(q.Params, "arguments")
		switch q.Tool.Name {
		case WaitTool:
			return c.wait(ctx, q, given)
		case listTool, readTool, promptTool:
			return s.reading(ctx, q, q.Tool.Name, given)
		case results.Tool:
			return c.read(ctx, given)
		}
		return s.reading(ctx, q, readTool, s.skillURI(s.Resources(q).Catalogue(), q.Tool.Name))
	}
}

// read runs the tool read_result.
func (c *Caller) read(ctx context.Context, given json.RawMessage) (json.RawMessage, error) {
	args, violation := results.ParseArguments(given)
	for _, one := range []struct {
		name   string
		own    *string
		beside string
	}{{"select", &args.Select, c.Select}, {"grep", &args.Grep, c.Grep}} {
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
	page, err := c.Pages.Read(ctx, args)
	if err != nil {
		return nil, err
	}
	return results.OnPage(page, c.Form.Always()).Raw(), nil
}
