// Package builtin is the MCP server named mcpx, which runs in this process. It returns further parts of long results, saves
// results as files, waits for calls that are still running, runs programs, and gives clients that only know tools access to the
// resources, prompts and skills of all servers.
package builtin

import (
	"context"
	"encoding/json"
	"slices"

	"mcpx/internal/arguments"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/files"
	"mcpx/internal/programs"
	"mcpx/internal/request"
	"mcpx/internal/resources"
	"mcpx/internal/results"
)

// Name is the name by which models call the server.
const Name = results.Server

// WaitTool is the tool that waits for the result of a call that is still running.
const WaitTool = "wait_result"

const waitSchema = `{"type":"object","properties":{"handle":{"type":"string"}},"required":["handle"],"additionalProperties":false}`

// Server is the built-in server. Its fields must be set before its first use and never change. Safe for concurrent use.
type Server struct {
	// Resources returns the resources and prompts that the caller of a request may see.
	Resources func(q *request.Request) *resources.Servers
	// Shown reports whether the config lets clients see resources, and whether it lets clients see prompts.
	Shown func() (resources, prompts bool)
	// NoServer makes the error for a server that is not in the catalogue.
	NoServer func(name string, seen *catalog.Snapshot) error
	// Programs returns the programs that callers can run; nil if programs are turned off.
	Programs func() *Programs
	// Journal records the requests to servers. May be nil.
	Journal *request.Journal

	all, reader, saver *catalog.Server // saver is like the server all, but also has the tool save_result
}

// New makes the server. The caller sets its fields.
func New() *Server {
	s := &Server{}
	s.all, s.reader = described()
	s.saver = with(s.all, []catalog.Tool{saving()})
	return s
}

// described returns two definitions: all is the whole server, and reader is the part of it that the catalogue lists. Models learn
// about the other tools from results that mention them.
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

// Server returns the server as a caller sees it. snap is the catalogue that the caller sees; the skills in it become tools.
// Programs for which the func denied returns true are left out. saves means that the caller may save results.
func (s *Server) Server(snap *catalog.Snapshot, saves bool, denied func(tool string) bool) *catalog.Server {
	return with(withSkills(s.Own(saves), s.skills(snap)), s.Programs().tools(denied, false))
}

// Own returns the server with only its own tools, without skills and programs. saves adds the tool save_result.
func (s *Server) Own(saves bool) *catalog.Server {
	if saves {
		return s.saver
	}
	return s.all
}

// All returns the server with its own tools and all programs, but without skills. saves adds the tool save_result.
func (s *Server) All(saves bool) *catalog.Server {
	return with(s.Own(saves), s.Programs().tools(func(string) bool { return false }, false))
}

// Reader returns the part of the server that the catalogue lists: the tools for resources, prompts and skills, and the stored
// programs, except those for which the func denied returns true. It returns nil if there are no such tools.
func (s *Server) Reader(seen *catalog.Snapshot, denied func(tool string) bool) *catalog.Server {
	stored := s.Programs().tools(denied, true)
	reader := s.listed(seen)
	switch {
	case len(stored) == 0:
		return reader
	case reader == nil:
		alone := s.reader.WithTools(nil)
		alone.Instructions, reader = "Stored programs", &alone
	}
	return with(reader, stored)
}

// with returns a copy of s with these tools added, or s itself if there are none.
func with(s *catalog.Server, tools []catalog.Tool) *catalog.Server {
	if len(tools) == 0 {
		return s
	}
	more := s.WithTools(append(slices.Clone(s.Tools), tools...))
	return &more
}

// listed returns the part of the server that the catalogue lists besides stored programs: the tools for resources and prompts,
// and the skills. It returns nil if no server has resources, prompts or skills.
func (s *Server) listed(seen *catalog.Snapshot) *catalog.Server {
	if skills := s.skills(seen); len(skills) > 0 {
		return withSkills(s.reader, skills)
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

// Caller says how the caller of a request receives results, and what it may use.
type Caller struct {
	results.Pages
	Form results.Format
	// Select and Grep are arguments of exec itself, not of the tool that it calls.
	Select, Grep string
	// Files returns the folders that are open to the caller. The error is a [files.Error] or the error of ctx.
	Files func(ctx context.Context) (files.Folders, error)
	// Read is called once with each server from which the answer contains a resource or prompt. May be nil.
	Read func(server string)
	// Program runs a program for the caller of a request; nil if the caller is a program.
	Program func(ctx context.Context, q *request.Request, p programs.Program) (*programs.Outcome, error)
}

// Reads reports whether a tool returns stored results, which are already in the caller's format.
func Reads(tool string) bool { return tool == results.Tool || tool == WaitTool }

// ChargeOf says how a request to a tool counts towards the limits of its caller. A program itself occupies no concurrency slot,
// because each of its calls occupies one.
func (s *Server) ChargeOf(tool string) request.Charge {
	switch {
	case tool == results.Tool, tool == listTool, tool == SaveTool:
		return request.ChargeCall
	case tool == WaitTool, s.Runs(tool):
		return request.ChargeWait
	}
	return request.ChargeNone
}

// Verbatim reports whether a tool's result may be a file that the model edits, and so must stay unchanged.
func (s *Server) Verbatim(tool string) bool { return tool != listTool && !s.Runs(tool) }

// Serve returns the handler for the caller's request to this server.
func (s *Server) Serve(c Caller) request.Handler {
	return func(ctx context.Context, q *request.Request) (json.RawMessage, error) {
		given := wire.Member(q.Params, "arguments")
		switch q.Tool.Name {
		case WaitTool:
			return c.wait(ctx, q, given)
		case listTool, readTool, promptTool:
			return s.reading(ctx, q, c.Read, q.Tool.Name, given)
		case results.Tool:
			return c.read(ctx, q.Event, given)
		case SaveTool:
			return c.save(ctx, given)
		}
		if p := s.Programs(); s.Runs(q.Tool.Name) {
			return c.program(ctx, q, p, given)
		}
		return s.reading(ctx, q, c.Read, readTool, s.skillURI(s.Resources(q).Catalogue(), q.Tool.Name))
	}
}

// read runs the tool read_result. In event, which records this call, it notes from which tool the kept result comes.
func (c *Caller) read(ctx context.Context, event *request.Event, given json.RawMessage) (json.RawMessage, error) {
	args, violation := results.ParseArguments(given)
	for _, one := range []struct {
		name  string
		own   *string
		outer string
	}{{"select", &args.Select, c.Select}, {"grep", &args.Grep, c.Grep}} {
		switch {
		case *one.own == "":
			*one.own = one.outer
		case one.outer != "" && violation == "":
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
	switch of := page.Origin; of.Tool {
	case OfProgram:
		event.ReadOn = &request.Target{Server: Name, Tool: RunTool}
	case "": // not a result of a tool: reading on in a resource or prompt is not counted
	default:
		event.ReadOn = &request.Target{Server: of.Server, Tool: of.Tool}
	}
	return results.OnPage(page, c.Form.Always()).Raw(), nil
}
