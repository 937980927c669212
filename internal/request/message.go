// Package request describes one message to one server: its content, its sender, how its answer gets back, the
// event that records it for observers, and the chain of middleware that every such message passes.
package request

import (
	"encoding/json"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/policy"
)

// From is what a message to a server takes over from the client's message that caused it.
type From struct {
	// Client is the sender; nil if mcpx itself sends the message, for example for a command.
	Client *caller.Client
	// Meta are the members of _meta to send with the message.
	Meta []Meta
	// Input has the client's answers to the questions in an earlier input_required result.
	Input Input
	// Sink receives the notifications that belong to the message.
	Sink Sink
	// Event is filled in while the message is handled. Whoever made it must end it ([Journal.End]). If it is nil,
	// the first package that needs an event makes one.
	Event *Event
}

// Sink receives the notifications that a server sends during a request. The funcs get the notification's params
// and must not block. A nil func means that the client does not want such notifications.
type Sink struct {
	Progress, Log func(params json.RawMessage)
	// Level is the lowest log level that the client wants, if Log is set. mcpx passes it to the server, which may
	// ignore it and send less severe messages too. An empty or unknown level means debug.
	Level string
}

// Request is one message to one server, of any method.
type Request struct {
	From
	// To is the server, from a catalogue that contains only what the caller may see.
	To *catalog.Server
	// Tool is the tool that a tools/call calls, from the same catalogue; nil for other methods.
	Tool   *catalog.Tool
	Method string
	// Params is a JSON object without _meta, which is sent unchanged; nil means {}.
	Params json.RawMessage
	// Notification means that there is no answer.
	Notification bool
	// Subscription is set for resources/subscribe.
	Subscription *Subscription
	// Relay means that mcpx returns an input_required result to the client, which answers its questions with a new request. If
	// Relay is false, mcpx asks the client these questions during the request.
	Relay bool
	// Repeatable permits mcpx to send the request again after the session was lost. It is set if repeating does no harm:
	// the tool is declared idempotent or read-only, or the method only reads, for example.
	Repeatable bool
	// MayHaveRun means that an earlier message may already have had the effect that the caller wants from this one: the message
	// that began a task, or the same request at another instance. An error about this message then does not say that nothing was
	// executed.
	MayHaveRun bool
	Times
	// Scope is the part of the catalogue that the client's view shows; nil means all of it. Apps also permits
	// tools that are only for apps.
	Scope *policy.Scope
	Apps  bool
	// ReadOnly means that the request is refused if the tool is not declared read-only.
	ReadOnly bool
	// Program means that the tool runs a program. ReadOnly and confirmation are not applied to this request but to the
	// program's calls: the program itself changes nothing, and each of its calls is a request.
	Program bool
	// Consent describes the user's confirmation, if the config demands one.
	Consent Consent
	// Credentials authenticate the caller to the server. A middleware takes them from the caller's message or login.
	Credentials *Credentials
	// Serve, if not nil, is the built-in server, which answers the request in place of an MCP server and needs no session.
	// Charge then says how the request counts towards the limits of its caller.
	Serve  Handler
	Charge Charge
	// Check, if not nil, is called before the request is sent. opened means that a session was opened since the call began, so
	// that the server's tools may have changed. If Check returns an error, the request is not sent.
	Check func(opened bool) error
}

// Charge says how a request to the built-in server counts towards the limits of its caller. It never counts
// towards the limits of a server.
type Charge uint8

// The values of [Charge].
const (
	// ChargeCall means that the request counts as a call, and occupies a concurrency slot.
	ChargeCall Charge = iota
	// ChargeWait means that the request counts as a call, but occupies no slot, since it waits for a call that occupies one.
	ChargeWait
	// ChargeNone means that the request does not count, since it makes other requests that count.
	ChargeNone
)

// Times bound a request. If Timeout is 0, the bound in the server's settings holds; if Wait or Idle is 0, there is no such
// bound. A subscription ignores Timeout and Idle.
type Times struct {
	Wait time.Duration // for how long the request may wait for a session
	// Starting, if not nil, means that the request may wait longer than Wait, but not longer than Timeout, while the command of
	// the server installs or starts. Starting is called from time to time with a text that says what the command does.
	Starting func(does string)
	Timeout  time.Duration // for how long the request may wait for the answer
	Idle     time.Duration // for how long the request may go on without progress; progress does not extend Timeout
}

// Subscription follows the changes of one resource. It begins with the answer to resources/subscribe and ends with the context
// of the request, with the session, or when the server ends it.
type Subscription struct {
	// Renewal means that the subscription replaces one that ended with its session, so it has already been counted
	// towards the caller's limits.
	Renewal bool
	// Updated gets the params of each notification. It must not block.
	Updated func(params json.RawMessage)
	// Ended is set by the handler when the server has accepted the subscription. It later receives one value: the reason why
	// the subscription has ended.
	Ended chan error
}

// Credentials authenticate the caller to the server. They come from the caller's message or login, not from the config.
type Credentials struct {
	Headers map[string]string
	Secrets []string // the secret values in Headers, which must not appear in any text
	// Subject is the caller's JWT, if mcpx exchanges it for a token of the server. Principal is the ID of the caller. When the
	// same principal sends a new JWT, mcpx goes on using the open session.
	Subject, Principal string
	// Login is the ID of the principal's own login with the server; empty if the server needs no login of each principal.
	Login string
}

// Meta is one member of _meta.
type Meta struct {
	Name  string
	Value any
}

// ToolParams returns the params of a tools/call. arguments is a JSON object; nil means {}.
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
	Responses json.RawMessage // a JSON object with the client's answers; the names are the keys of the server's requests
	State     json.RawMessage // the requestState, a JSON string, as the server wrote it
}

// Continues reports whether the request continues a call that an earlier request began.
func (i Input) Continues() bool { return i.Responses != nil || i.State != nil }

// With returns params, with Responses and State added as the members inputResponses and requestState.
func (i Input) With(params json.RawMessage) json.RawMessage {
	if i.Responses != nil {
		params = wire.WithMember(params, "inputResponses", i.Responses)
	}
	if i.State != nil {
		params = wire.WithMember(params, "requestState", i.State)
	}
	return params
}
