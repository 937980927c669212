package executor

import (
	"mcpx/internal/base/catalog"
	"mcpx/internal/builtin"
	"mcpx/internal/caller"
	"mcpx/internal/learned"
	"mcpx/internal/policy"
	"mcpx/internal/results"
	"mcpx/internal/schemats"
)

// learns returns a func that learns the shape (the type) of a result of the called tool; nil if nothing should be learned.
// Results of the built-in server are not learned, because they contain results of other tools.
func (e run) learns(r *Request, t target) func(results.Sample) {
	if !e.options.Learn || r.Server == builtin.Name || t.tool == nil {
		return nil
	}
	of := learned.Tool{Server: t.server, Tool: t.tool, Part: e.part(r.Client, r.Scope)}
	if !e.learned.Due(of) {
		return nil
	}
	return func(sample results.Sample) {
		e.learned.Learn(of, func() ([]byte, bool) { return sample.Value() })
	}
}

// maxLearned is the maximum length, in tokens, of what LearnedType returns.
const maxLearned = 60

// LearnedType returns the learned shape of a tool's results. The text is the parameter prefix, followed by a TypeScript type. It
// is empty if the tool declares an output type or is built in, if nothing is learned, or if mcpx has learned too little from the
// calls of clients that see the same part of the catalogue.
func (e *Executor) LearnedType(
	client *caller.Client, scope *policy.Scope, s *catalog.Server, t *catalog.Tool, prefix string,
) string {
	if !e.current().Learn || s.Name == builtin.Name {
		return ""
	}
	return e.learned.TypeScript(learned.Tool{Server: s, Tool: t, Part: e.part(client, scope)}, prefix, maxLearned)
}

// part identifies the part of the catalogue that an authenticated client sees, which depends on its rights and on its view. It
// is empty without authentication.
func (e *Executor) part(client *caller.Client, scope *policy.Scope) string {
	if client.On() == nil {
		return ""
	}
	part := "auth"
	if rights := permissionsOf(e.registry.Snapshot(), client); rights != nil {
		part = rights.Digest()
	}
	if scope != nil {
		part += " " + client.View
	}
	return part
}

// typeOf says how inspect shows the type of a tool's results. t may be nil.
func typeOf(t *catalog.Tool) results.Type {
	switch {
	case t == nil || len(t.OutputSchema) == 0:
		return results.Untyped
	case schemats.Unwraps(t.OutputSchema):
		return results.Unwrapped
	}
	return results.Typed
}
