package executor

import (
	"encoding/json"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/policy"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// Request is one call, or several of one tool, as the client sent it.
type Request struct {
	// From is inherited from the client's message. Kept results belong to the client's principal. If Event is nil, Exec
	// makes the event and ends it.
	request.From
	// Scope is the part of the catalogue that the client's view shows; nil = all of it.
	Scope *policy.Scope
	// Catalogue is what the caller may see, from [Executor.Catalogue]; nil = as of the beginning of the call.
	Catalogue    *catalog.Snapshot
	Server, Tool string
	// Arguments is raw JSON: an object, a string that holds one, or absent.
	Arguments json.RawMessage
	// Beside is what the client sent beside the arguments of exec.
	Beside Beside
	// Each are the arguments of several calls of the tool, merged over Arguments: each is an object, or a string with an object.
	// Nil = one call; at most MaxEach.
	Each []json.RawMessage
	// Select is a jq filter for the result's JSON, empty = none.
	Select string
	// Grep is a regular expression for the texts of the result, or of the selection; empty = none.
	Grep string
	// Format is how the client takes the result.
	Format results.Format
	// Apps permits tools that are only for apps.
	Apps bool
	// ReadOnly refuses tools that are not declared read-only.
	ReadOnly bool
	// Native means that the client sees the tool itself: its results are not cut, and a [wire.RPCError] is returned as
	// an error. Untouched means that results are not compressed either.
	Native, Untouched bool
	// Task are the params with which a legacy client wants the call to be a task (MCP 2025-11-25), if the tool can be one; nil =
	// it wants the result.
	Task json.RawMessage
	// Consent is how the user confirms the call, where the config demands it.
	Consent request.Consent

	began time.Time
	read  string // the servers of the resources and prompts that a tool of the built-in server has read, each after a space
	// part is the part of the answer's limits that one of several calls has; 0 = the request is one call.
	part float64
}

// Beside is an object with arguments that were sent in the wrong place, nil if there are none: arguments of the tool, if it has such.
// Otherwise the call fails with Violation.
type Beside struct {
	Arguments json.RawMessage
	Violation string
}

// started fills in the catalogue, the time and the event of a request. own means that it made the event.
func (e *Executor) started(r Request) (started Request, own bool) {
	if r.Catalogue == nil {
		r.Catalogue = e.seen(&r)
	}
	r.began = time.Now()
	if own = r.Event == nil; own {
		r.Event = e.journal.Begin("tools/call", r.Client)
	}
	e.journal.Attempt(r.Event)
	r.Event.Server, r.Event.Tool, r.Event.ArgumentBytes = r.Server, r.Tool, len(r.Arguments)+len(r.Beside.Arguments)
	e.tracing.Begin(&r.From)
	return r, own
}
