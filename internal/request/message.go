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

// From has what a message to a server takes over from a client's message, if that message is why mcpx sends it.
type From struct {
	// Client is the sender; nil if mcpx itself sends the message, for example for a command.
	Client *caller.Client
	// Meta are the members of _meta that are sent with the message.
	Meta []Meta
	// Input has the client's answers to the questions of an earlier input_required result.
	Input Input
	// Sink receives the notifications that belong to the message.
	Sink Sink
	// Event is filled in while the message is handled. Whoever makes it must end it ([Journal.End]). If it is nil, the first
	// package that needs an event makes it.
	Event *Event
}

// Sink receives the notifications that a server sends during a request. Each func gets the params of a notification and must not
// block. A nil func means that the client does not want notifications of this kind.
type Sink struct {
	Progress, Log func(params json.RawMessage)
	// Level is the lowest log level that the client wants; it matters only if Log is set. mcpx passes it to the server, which may
	// ignore it and also send less severe messages. An unknown level means debug. If it is empty, the server is told none.
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
	// Notification means that the message is a notification, which gets no answer.
	Notification bool
	// Subscription is set for resources/subscribe.
	Subscription *Subscription
	// Relay says who asks the client, if the server answers with an input_required result. If it is true, the result goes to the
	// client, which answers its questions with a new request. If it is false, mcpx asks the client these questions during this
	// request.
	Relay bool
	// Repeatable permits mcpx to send the request again after the session was lost. It is set if repeating the request does no
	// harm: for example, if the tool is declared idempotent or read-only, or if the method only reads.
	Repeatable bool
	// MayHaveRun means that the effect of this message may have happened already, by an earlier message: the one that began a task,
	// or the same request at another instance. So even if this message fails without being executed, its error must not say that
	// nothing was executed.
	MayHaveRun bool
	Times
	// Scope is the part of the catalogue that the client's view shows; nil means all of it. Apps also permits
	// tools that are only for apps.
	Scope *policy.Scope
	Apps  bool
	// ReadOnly means that the request is refused if its tool is not declared read-only.
	ReadOnly bool
	// Program means that the tool runs a program. A program itself changes nothing, and each of its calls is a request of its own.
	// So ReadOnly and confirmation are applied to these calls, and not to this request.
	Program bool
	// Consent describes how the user confirms the request, if the config demands that.
	Consent Consent
	// Credentials authenticate the caller to the server. A middleware takes them from the caller's message or login.
	Credentials *Credentials
	// Serve is set if the request is for the built-in server. It answers the request, in place of an MCP server, and needs no
	// session. Charge then says how the request counts towards the limits of its caller.
	Serve  Handler
	Charge Charge
	// Check is called before the request is sent; it may be nil. opened says that a session was opened since the call began, so the
	// server's tools may have changed. If Check returns an error, the request is not sent.
	Check func(opened bool) error
}

// Charge says how a request to the built-in server counts towards the limits of its caller. It never counts towards the limits of a
// server.
type Charge uint8

// The values of [Charge].
const (
	// ChargeCall means that the request counts as a call, and occupies a concurrency slot.
	ChargeCall Charge = iota
	// ChargeWait means that the request counts as a call, but occupies no slot, because it waits for a call that occupies one.
	ChargeWait
	// ChargeNone means that the request does not count, because it makes other requests that count.
	ChargeNone
)

// Times limit how long a request may take. If Timeout is 0, the limit in the server's settings applies. If Wait or Idle is 0, there
// is no such limit. Timeout and Idle do not apply to subscriptions.
type Times struct {
	Wait time.Duration // for how long the request may wait for a session
	// If Starting is set, the request may wait longer than Wait, but not longer than Timeout, while the command of the server is
	// being installed or starts. Starting is called from time to time with a text that says what the command does.
	Starting func(does string)
	Timeout  time.Duration // for how long the request may wait for the answer
	Idle     time.Duration // for how long the request may go on without progress; progress does not extend Timeout
}

// Subscription follows the changes of one resource. It begins when the server has answered resources/subscribe. It ends with the
// context of the request, with the session, or when the server ends it.
type Subscription struct {
	// Renewal means that the subscription replaces one that ended with its session. Then it does not count towards the caller's
	// limits, because the first one was counted.
	Renewal bool
	// Updated gets the params of each notification about the resource. It must not block.
	Updated func(params json.RawMessage)
	// Ended is nil until the server has accepted the subscription; the handler then sets it. It gets one value, the reason, when
	// the subscription has ended.
	Ended chan error
}

// Credentials authenticate the caller to the server. They come from the caller's message or login, not from the config.
type Credentials struct {
	Headers map[string]string
	Secrets []string // the secret values in Headers, which must not appear in any text
	// Subject is set if mcpx exchanges it for a token of the server: it is the caller's JWT, or the token that the issuer gave for
	// the caller's login. Principal is the ID of the caller. If the same principal sends a new JWT, the open session stays in use.
	Subject, Principal string
	// Login is the ID of the login that the principal has at the server; empty if principals do not log in to this server.
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

// Input is the part of a modern request that answers an input_required result (SEP-2322), as raw JSON. It is zero if the request
// begins a call.
type Input struct {
	Responses json.RawMessage // a JSON object with the client's answers; the names are the keys of the server's requests
	State     json.RawMessage // the requestState, a JSON string, as the server wrote it
}

// Continues reports whether the request continues a call that an earlier request has begun.
func (i Input) Continues() bool { return i.Responses != nil || i.State != nil }

// With returns params together with Responses and State, as the members inputResponses and requestState.
func (i Input) With(params json.RawMessage) json.RawMessage {
	if i.Responses != nil {
		params = wire.WithMember(params, "inputResponses", i.Responses)
	}
	if i.State != nil {
		params = wire.WithMember(params, "requestState", i.State)
	}
	return params
}
