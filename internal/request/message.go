// Package request is one message to one server: its content, its sender, the way of its answer, the event that records it
// for observers, and the chain of middleware that every such message passes.
package request

import (
	"encoding/json"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/policy"
)

// From is what a message to a server inherits from the client's message that caused it. Every package passes it on
// unchanged.
type From struct {
	// Client is the sender; nil for mcpx itself, as for a command.
	Client *caller.Client
	// Meta are members of _meta.
	Meta []Meta
	// Input answers the questions of an earlier input_required result.
	Input Input
	// Sink receives the notifications that belong to the message.
	Sink Sink
	// Event is filled in while the message is handled; its maker ends it ([Journal.End]). If it is nil, the first
	// package that needs an event makes one.
	Event *Event
}

// Sink receives the notifications that a server sends during a request. The funcs get the notification's params and must not
// block. A nil func means that the client has not asked for such notifications.
type Sink struct {
	Progress, Log func(params json.RawMessage)
	// Level is the lowest level that the client wants where Log is set. mcpx passes it to the server, which may send less
	// severe messages all the same. Empty or unknown: debug.
	Level string
}

// Request is one message to one server, of any method.
type Request struct {
	From
	// To is the server, from a catalogue that the caller may see.
	To *catalog.Server
	// Tool is the tool of a tools/call, from the same catalogue; nil for other methods.
	Tool   *catalog.Tool
	Method string
	// Params is a JSON object without _meta, sent unchanged; nil = {}.
	Params json.RawMessage
	// Notification means that there is no answer.
	Notification bool
	// Subscription is set for resources/subscribe.
	Subscription *Subscription
	// Relay returns an input_required result to the client, which answers it with another request. Otherwise mcpx asks
	// the client during the request.
	Relay bool
	// Repeatable allows sending the request again after the session was lost: the tool is declared idempotent or
	// read-only.
	Repeatable bool
	Times
	// Scope is the part of the catalogue that the client's view shows; nil = all of it. Apps also permits tools that are
	// only for apps.
	Scope *policy.Scope
	Apps  bool
	// ReadOnly refuses a tool that is not declared read-only.
	ReadOnly bool
	// Consent is the user's confirmation, where the config demands one.
	Consent Consent
	// Credentials for the server, taken from the caller's message by a middleware.
	Credentials *Credentials
	// Serve answers the request in place of a session: set for the built-in server. Charge says how such a request counts
	// against the limits of its caller.
	Serve  Handler
	Charge Charge
	// Check is called before the request is sent; opened means that a session was opened since the call began, so that
	// the server's tools may have changed. An error ends the request. May be nil.
	Check func(opened bool) error
}

// Charge says how a request to the built-in server counts against the limits of its caller. It never counts against the
// limits of a server.
type Charge uint8

// The values of [Charge].
const (
	// ChargeCall: it counts as a call, with a concurrency slot.
	ChargeCall Charge = iota
	// ChargeWait: it counts as a call, but takes no slot, as it waits for a call that has one.
	ChargeWait
	// ChargeNone: it makes requests that are counted themselves.
	ChargeNone
)

// Times bound a request. 0 = the bound in the server's settings; for Wait, no bound.
type Times struct {
	Wait time.Duration // for a session
	// Starting, if not nil, means that the request waits beyond Wait, within Timeout, while the command of the server installs
	// or starts. Starting is called now and then with what the command does.
	Starting func(does string)
	Timeout  time.Duration // for the answer
	Idle     time.Duration // without progress
}

// Subscription follows the changes of one resource, from the answer to resources/subscribe until the request's context or
// the session with the server ends.
type Subscription struct {
	// Renewal means that an earlier session was lost: the subscription was already counted against the caller's limits.
	Renewal bool
	// Updated gets the params of each notification. It must not block.
	Updated func(params json.RawMessage)
	// Ended receives the reason of the end, once, if the server had agreed. It must have a buffer of one.
	Ended chan error
}

// Credentials authenticate the caller to the server. They come from the caller's message, not from the config.
type Credentials struct {
	Headers map[string]string
	Secrets []string // the secret values in Headers, which must not appear in any text
	// Subject is the caller's JWT if it is to be exchanged for another token, and Principal is the ID of the caller: another
	// token of the same principal reuses the open session.
	Subject, Principal string
}

// Meta is one member of _meta.
type Meta struct {
	Name  string
	Value any
}

// ToolParams returns the params of a tools/call; arguments is a JSON object, nil = {}.
func ToolParams(tool string, arguments json.RawMessage) json.RawMessage {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	params := make([]byte, 0, len(arguments)+len(tool)+32)
	params = wire.AppendQuoted(append(params, `{"name":`...), tool)
	return append(append(append(params, `,"arguments":`...), arguments...), '}')
}

// Input is the part of a modern request that answers an input_required result (SEP-2322), as raw JSON. It is zero for a
// first request.
type Input struct {
	Responses json.RawMessage // an object, by the keys of the requests
	State     json.RawMessage // the requestState, a string, as the server wrote it
}

// With returns params with the input added.
func (i Input) With(params json.RawMessage) json.RawMessage {
	if i.Responses != nil {
		params = wire.WithMember(params, "inputResponses", i.Responses)
	}
	if i.State != nil {
		params = wire.WithMember(params, "requestState", i.State)
	}
	return params
}
