package executor

import (
	"encoding/json"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/policy"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// Request is one call, or several calls of one tool, as the client sent it.
type Request struct {
	// From has what is taken from the client's message. Stored results belong to the principal of From.Client. If From.Event is
	// nil, Exec makes the event and ends it.
	request.From
	// Scope is the part of the catalogue that the client's view shows; nil means the whole catalogue.
	Scope *policy.Scope
	// Catalogue is what the caller may see, from [Executor.Catalogue]; nil means that Exec takes it when the call begins.
	Catalogue    *catalog.Snapshot
	Server, Tool string
	// Arguments is raw JSON: an object, a string that contains an object, or nil.
	Arguments json.RawMessage
	// Beside has arguments for the tool that the client put into the call of exec itself, next to the member "arguments" instead of
	// into it.
	Beside Beside
	// Each has the arguments of several calls of the tool; each is an object, or a string that contains one, and is merged over
	// Arguments. Nil means one call. It has at most MaxEach elements.
	Each []json.RawMessage
	// EachFrom is a reference that a model wrote in place of the whole list Each. Nil means none; otherwise Each is nil.
	EachFrom json.RawMessage
	// References means that mcpx replaces the references in Arguments, Beside and Each by the values to which they refer. It is
	// true for arguments that a model wrote for exec.
	References bool
	// Select is a jq filter for the JSON of the result; "" means no filter.
	Select string
	// Grep is a regular expression that selects from the texts of the result, after Select; "" means none.
	Grep string
	// Format is the form in which the client receives the result.
	Format results.Format
	// Apps allows tools that are only for apps.
	Apps bool
	// ReadOnly refuses tools that are not declared as read-only.
	ReadOnly bool
	// Native means that the client sees the server's tools under their own names, instead of the tool exec. It is also set for
	// the calls of a program. Results are not cut, and a [wire.RPCError] is returned as an error. Untouched means that results
	// are not compressed either.
	Native, Untouched bool
	// Task has the params with which a client of MCP 2025-11-25 asks to run the call as a task, if the tool supports that; nil
	// means that the client wants the result.
	Task json.RawMessage
	// Consent is how the user confirms the call, if the config requires confirmation.
	Consent request.Consent

	progressing
}

// progressing has the fields of a request that the executor sets itself.
type progressing struct {
	began time.Time
	origins
	// part is not 0 if this is one of several calls: of the calls of Each, or of the calls that a program makes. Then the limits
	// for the result are the limits of the answer multiplied by part, which is at most 1.
	part float64
}

// origins say from which servers and tools the result of a tool of the built-in server comes.
type origins struct {
	read  string // the names of the servers whose resources and prompts the tool has read, each after a space
	parts string // the tools that a program has called, in the form of [builtin.OfProgram]
}

// Beside has arguments for the tool that the client put next to the member "arguments" of exec instead of into it. The field
// Arguments has them as a JSON object; it is nil if there are none. The tool gets them if its schema declares each of them, and if
// none of them is also among its arguments with another value. Otherwise the call fails with the text Violation.
type Beside struct {
	Arguments json.RawMessage
	Violation string
}

// started sets the catalogue, the start time and the event of a request. created reports whether started created the event.
func (e *Executor) started(r Request) (started Request, created bool) {
	if r.Catalogue == nil {
		r.Catalogue = e.visible(&r)
	}
	r.began = time.Now()
	if created = r.Event == nil; created {
		r.Event = e.journal.Begin("tools/call", r.Client)
	}
	e.journal.Attempt(r.Event)
	r.Event.Server, r.Event.Tool, r.Event.ArgumentBytes = r.Server, r.Tool, len(r.Arguments)+len(r.Beside.Arguments)
	e.tracing.Begin(&r.From)
	return r, created
}
