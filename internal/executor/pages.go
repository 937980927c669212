package executor

import (
	"context"
	"slices"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/builtin"
	"mcpx/internal/compress"
	"mcpx/internal/results"
)

// readable reports whether the sender of a request may read a stored result. The sender must still be allowed to call the tool that
// the result comes from or, for the result of a program, all tools that the program called. A result of the built-in server that is
// not from a program may contain resources and prompts. Then the sender must still see the servers that origin names, with their
// resources and prompts.
//
// If the tools of a server are not known yet, readable waits for them: another replica, which knew them, may have made the result.
func (e run) readable(ctx context.Context, r *Request, origin results.Origin) bool {
	if origin.Tool == builtin.OfProgram {
		for line := range strings.Lines(origin.Server) {
			server, _, _ := strings.Cut(line, "\t")
			e.awaitKnown(ctx, r, server)
		}
		return e.readableParts(e.visible(r), origin.Server)
	}
	if origin.Tool != "" {
		e.awaitKnown(ctx, r, origin.Server)
	}
	snap := e.visible(r)
	if origin.Tool == "" {
		for name := range strings.FieldsSeq(origin.Server) {
			if s, ok := snap.Server(name); !ok || s.ToolsOnly {
				return false
			}
		}
		return true
	}
	return has(snap, origin.Server, origin.Tool)
}

// awaitKnown waits for a server that is connecting and whose tools are not known yet, no longer than the request may still
// wait.
func (e run) awaitKnown(ctx context.Context, r *Request, server string) {
	if s, ok := e.visible(r).Server(server); ok && !s.Known && s.State == catalog.Connecting {
		bounded, cancel := context.WithTimeout(ctx, e.waitLeft(r))
		defer cancel()
		e.registry.WaitServer(bounded, server)
	}
}

// has reports whether a catalogue has a tool with this name, which may be the name in the catalogue or the server's own name
// for the tool.
func has(seen *catalog.Snapshot, server, tool string) bool {
	s, ok := seen.Server(server)
	if !ok {
		return false
	}
	// A running call is stored under the client's name for the tool, which may begin with the server's name.
	_, found := s.Find(tool)
	return found || slices.ContainsFunc(s.Tools, func(t catalog.Tool) bool { return t.OwnName() == tool })
}

// readableParts reports whether a catalogue still has all tools that a program has called. parts has one line for each tool:
// the names of server and tool. Tools of the built-in server are not checked.
func (e *Executor) readableParts(seen *catalog.Snapshot, parts string) bool {
	for line := range strings.Lines(parts) {
		server, tool, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if server != builtin.Name && !has(seen, server, tool) {
			return false
		}
	}
	return true
}

// minTokens is for requests whose calls share the limit of one answer. However many calls there are, the limit for each result is
// at least minTokens tokens.
const minTokens = 300

// pages returns the limits for the results of a request, and the store for results that are longer.
func (e run) pages(r *Request) results.Pages {
	limit := e.options.ResultTokens
	if r.Native || r.Format.Uncut {
		limit = 0 // a client with Native does not see exec, with which it could read the rest
	}
	bytes := r.Format.Bytes
	if r.part > 0 && r.part < 1 {
		limit, bytes = int(r.part*float64(limit)), int(r.part*float64(bytes))
		if limit > 0 {
			limit = max(limit, minTokens)
		}
		if bytes > 0 {
			bytes = max(bytes, 4*minTokens)
		}
	}
	origin := results.Origin{Server: r.Server, Tool: r.Tool}
	if r.Server == builtin.Name {
		origin = results.Origin{Server: r.read}
		if r.parts != "" {
			origin = results.Origin{Server: r.parts, Tool: builtin.OfProgram}
		}
	}
	return results.Pages{
		Store: &e.store, Principal: r.Client.On().Key(), Origin: origin,
		Readable: func(ctx context.Context, of results.Origin) bool { return e.readable(ctx, r, of) },
		Limit:    limit, Preview: e.options.PreviewTokens,
		Bytes: bytes, LineFirst: r.Format.LineFirst, ShortNames: r.Format.ShortNames,
		Texts: r.Format.Texts(compress.Options{TOON: e.options.TOON, JS: e.options.JS}), Filter: e.options.Filter,
		Work: e.work,
	}
}
