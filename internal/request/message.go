// Package request is one message to one server: what it says, who sends it, how its answer comes back, the event that
// observers get of it, and the chain of middleware that every such message passes.
package request

import (
	"encoding/json"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/policy"
)

// From is what a message to a server takes over from the message of a client that caused it. Each floor hands it on
// as it is.
type From struct {
	// Client sends the message; nil for mcpx itself, as for a command.
	Client *caller.Client
	// Meta are members of _meta.
	Meta []Meta
	// Input answers what an earlier request of the same kind was asked.
	Input Input
	// Sink is where notifications go that belong to the message.
	Sink Sink
	// Event is filled in while the message is worked on. Who made it ends it ([Journal.End]). Nil = the first that
	// needs one makes it.
	Event *Event
}

// Sink takes the notifications that a server sends while it works on a request. The funcs get their params; they must not
// block. Nil = the client does not want them.
type Sink struct {
	Progress, Log func(params json.RawMessage)
	// Level is the least severe level of log messages that the client wants, where Log is not nil: mcpx asks the server
	// for it, and less severe ones may come all the same. Empty or unknown: debug.
	Level string
}

// Request is one message to one server, of any method.
type Request struct {
	From
	// To is the server, from a catalogue that the caller may see.
	To *catalog.Server
	// Tool is what a tools/call calls, from the same catalogue; nil for other methods.
	Tool   *catalog.Tool
	Method string
	// Params is a JSON object without _meta, sent as it is; nil = {}.
	Params json.RawMessage
	// Notification says that there is no answer.
	Notification bool
	// Subscription is what resources/subscribe begins; nil for other methods.
	Subscription *Subscription
	// Relay says that the client answers an input_required result itself, by another request, so that the result is
	// returned; else the client is asked.
	Relay bool
	// Repeatable says that the request may be executed twice, as one of a tool that is declared idempotent or
	// read-only: after a loss it is sent once more.
	Repeatable bool
	Times
	// Scope is the part of the catalogue that the client's view shows; nil = all of it. Apps adds the tools that are for
	// apps only.
	Scope *policy.Scope
	Apps  bool
	// ReadOnly refuses a tool that is not declared read-only.
	ReadOnly bool
	// Consent is the confirmation of a person, where the config asks for one.
	Consent Consent
	// Credentials are what the caller's message brings for the server, from the middleware that looks for it.
	Credentials *Credentials
	// Serve answers the request in place of a session, for a server inside of mcpx; nil for others.
	Serve Handler
	// Check is called before the request is sent, with whether a session was opened since the call began: what the
	// server lists may have changed. Its error ends the request. Nil = nothing to do.
	Check func(opened bool) error
}

// Times bound a request. 0 = the bound of the server's settings; for Wait, no bound of its own.
type Times struct {
	Wait    time.Duration // for a session
	Timeout time.Duration // for the answer
	Idle    time.Duration // without progress
}

// Subscription follows the changes of one resource, from the answer to resources/subscribe until the context of the
// request ends, or the session with the server.
type Subscription struct {
	// Renewal means that the server had agreed before, and its session was lost: the client has paid for the subscription.
	Renewal bool
	// Updated gets the params of each notification. It must not block.
	Updated func(params json.RawMessage)
	// Ended gets the reason of the end, once, if the server had agreed. It has room for one.
	Ended chan error
}

// Credentials are headers and the like for a server that come from the caller's message, not from the config.
type Credentials struct {
	Headers map[string]string
	Secrets []string // values of Headers that no text may show
	// Subject is the caller's JWT, where it is exchanged for another token, and Principal whose it is: another token of
	// the same principal is used on the session that is open.
	Subject, Principal string
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

// Input is what a request of the modern era has in answer to an input_required result (SEP-2322), as raw JSON. The zero
// value is a first request.
type Input struct {
	Responses json.RawMessage // an object, by the keys of the requests
	State     json.RawMessage // a string, as the server wrote it
}

// With returns params with the input as further members.
func (i Input) With(params json.RawMessage) json.RawMessage {
	if i.Responses != nil {
		params = wire.WithMember(params, "inputResponses", i.Responses)
	}
	if i.State != nil {
		params = wire.WithMember(params, "requestState", i.State)
	}
	return params
}
