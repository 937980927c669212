// Package request is one message to one server: what it says, who sends it, how its answer comes back, and the chain
// of middleware that every such message passes.
package request

import (
	"encoding/json"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// Request is one request of any method.
type Request struct {
	Method string
	// Params is a JSON object without _meta, sent as it is; nil = {}.
	Params json.RawMessage
	// Meta are members of _meta.
	Meta []Meta
	// Client sends the request; nil for nobody in particular.
	Client *caller.Client
	// Input answers what an earlier request of the same kind was asked. Relay says that
	// the client answers an input_required result itself, by another request, so that Call
	// returns it; else Call asks the client.
	Input Input
	Relay bool
	// Before is called before the request is sent, with whether a session was opened since
	// Call began: what the server lists may have changed. Its error ends the request. Nil =
	// nothing to do.
	Before func(opened bool) error
	// Repeatable says that the request may be executed twice, as a tool that is
	// declared idempotent or read-only: after a loss it is sent once more.
	Repeatable bool
	// Wait bounds the wait for a session; 0 = no wait beyond the request's time.
	Wait time.Duration
	// Timeout and Idle replace the Spec's CallTimeout and IdleTimeout; 0 = the
	// Spec's.
	Timeout, Idle time.Duration
	// OnProgress gets the params of each progress notification, from the reader:
	// it must not block. May be nil.
	OnProgress func(params json.RawMessage)
	// OnLog, which may be nil, gets the params of log messages, as OnProgress. A message
	// that names no request goes to the oldest request of Client, if no other client has
	// used the session lately.
	OnLog func(params json.RawMessage)
	// LogLevel is the level that mcpx asks the server for where OnLog is not nil; less
	// severe messages may come all the same. Empty or unknown: debug.
	LogLevel string
}

// Meta is one member of _meta.
type Meta struct {
	Name  string
	Value any
}

// ToolParams are the params of a tools/call; arguments is a JSON object, nil = {}.
func ToolParams(tool string, arguments json.RawMessage) json.RawMessage {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	params := make([]byte, 0, len(arguments)+len(tool)+32)
	params = wire.AppendQuoted(append(params, `{"name":`...), tool)
	return append(append(append(params, `,"arguments":`...), arguments...), '}')
}

// Input is what a request of the modern era has in answer to an input_required result
// (SEP-2322), as raw JSON. The zero value is a first request.
type Input struct {
	Responses json.RawMessage // an object, by the keys of the requests
	State     json.RawMessage // a string, as the server wrote it
}

// InputError says why a request for input ended without an answer.
type InputError struct{ Reason string }

func (e *InputError) Error() string { return "the server asks for input: " + e.Reason }

// With are params with the input as further members.
func (i Input) With(params json.RawMessage) json.RawMessage {
	if i.Responses != nil {
		params = wire.WithMember(params, "inputResponses", i.Responses)
	}
	if i.State != nil {
		params = wire.WithMember(params, "requestState", i.State)
	}
	return params
}
