package executor

import (
	"context"

	"mcpx/internal/base/catalog"
	"mcpx/internal/builtin"
	"mcpx/internal/caller"
	"mcpx/internal/files"
	"mcpx/internal/policy"
)

// taking tells the built-in server in which form the caller of a request receives results, and what the caller may use.
func (e run) taking(r *Request) builtin.Caller {
	c := builtin.Caller{
		Pages: e.pages(r), Form: r.Format, Select: r.Select, Grep: r.Grep, Read: func(server string) { r.read += " " + server },
		Files: func(ctx context.Context) (files.Folders, error) { return e.folders(ctx, r.Client) },
	}
	if r.Event == nil || r.Event.Program == 0 {
		c.Program = e.program(r)
	}
	return c
}

// own returns the built-in server for a client. snap is the catalogue that the client sees, and scope is the scope of the
// client's view.
func (e *Executor) own(client *caller.Client, scope *policy.Scope, snap *catalog.Snapshot) *catalog.Server {
	return e.builtin.Server(snap, e.Saves(client, scope), e.denied(client, scope))
}

// denied returns a func that reports whether a client must not see a tool that runs programs: the tool run, or a stored program.
// That is so if its rights deny the tool, or if the config or the scope of its view disables the tool.
func (e *Executor) denied(client *caller.Client, scope *policy.Scope) func(tool string) bool {
	snap := e.registry.Snapshot()
	rights, rules := permissionsOf(snap, client), policy.RulesOf(snap)
	return func(tool string) bool {
		return rights.Denies(e.builtin.Own(true), tool) || rules.Disables(builtin.Name, tool) || scope.Disables(builtin.Name, tool)
	}
}

// Reader returns the part of the built-in server that the catalogue in snap lists for a client: the tools for resources,
// prompts and skills, and the stored programs. scope is the scope of the client's view. It returns nil if there are none.
func (e *Executor) Reader(client *caller.Client, scope *policy.Scope, snap *catalog.Snapshot) *catalog.Server {
	return e.builtin.Reader(snap, e.denied(client, scope))
}

// Stored returns a value that is different after each change of the stored programs, for use as the key of a cache.
func (e *Executor) Stored() any { return e.current().Programs }

// Programs reports whether a client may run programs that it sends. scope is the scope of its view.
func (e *Executor) Programs(client *caller.Client, scope *policy.Scope) bool {
	return e.current().Programs != nil && !e.denied(client, scope)(builtin.RunTool)
}
