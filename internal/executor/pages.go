package executor

import (
	"slices"

	"mcpx/internal/base/catalog"
	"mcpx/internal/builtin"
	"mcpx/internal/compress"
	"mcpx/internal/results"
)

// readable reports whether the sender of a request may still call the tool that a result comes from.
func (e *Executor) readable(r *Request, of results.Origin) bool {
	if of.Server == "" {
		return true
	}
	s, ok := e.seen(r).Server(of.Server)
	switch {
	case !ok:
		return false
	case of.Tool == "":
		return !s.ToolsOnly
	}
	_, found := s.Find(of.Tool) // a call that goes on has the name as it was asked for
	return found || slices.ContainsFunc(s.Tools, func(t catalog.Tool) bool { return t.OwnName() == of.Tool })
}

// pages returns the limits for a request's results, and the store for those that are longer.
func (e run) pages(r *Request) results.Pages {
	limit := e.options.ResultTokens
	if r.Native {
		limit = 0 // such a client has no exec to read on with
	}
	origin := results.Origin{Server: r.Server, Tool: r.Tool}
	if r.Server == builtin.Name {
		origin = results.Origin{Server: r.read}
	}
	return results.Pages{
		Store: &e.store, Principal: r.Client.On().Key(), Origin: origin,
		Readable: func(of results.Origin) bool { return e.readable(r, of) },
		Limit:    limit, Preview: e.options.PreviewTokens,
		Bytes: r.Format.Bytes, LineFirst: r.Format.LineFirst, ShortNames: r.Format.ShortNames,
		Texts: r.Format.Texts(compress.Options{TOON: e.options.TOON, JS: e.options.JS}), Filter: e.options.Filter,
		Work: e.work,
	}
}
