package executor

import (
	"context"

	"mcpx/internal/base/catalog"
	"mcpx/internal/builtin"
	"mcpx/internal/caller"
	"mcpx/internal/files"
	"mcpx/internal/policy"
)

// taking describes for the built-in server how the caller of a request receives results.
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

// own returns the built-in server for a client that sees the given catalogue through a view with this scope.
func (e *Executor) own(client *caller.Client, scope *policy.Scope, seen *catalog.Snapshot) *catalog.Server {
	return e.builtin.Server(seen, e.Saves(client, scope), e.denied(client))
}

// denied returns the func that reports whether rules deny a client a tool of the built-in server.
func (e *Executor) denied(client *caller.Client) func(tool string) bool {
	rights := grant(e.registry.Snapshot(), client)
	return func(tool string) bool { return rights.Denies(e.builtin.Own(true), tool) }
}

// Reader calls [builtin.Server.Reader].
func (e *Executor) Reader(client *caller.Client, snap *catalog.Snapshot) *catalog.Server {
	return e.builtin.Reader(snap, e.denied(client))
}

// Stored identifies the stored programs: it returns a different value when they have changed.
func (e *Executor) Stored() any { return e.current().Programs }

// Programs reports whether a client may run programs that it sends.
func (e *Executor) Programs(client *caller.Client) bool {
	return e.current().Programs != nil && !e.denied(client)(builtin.RunTool)
}
