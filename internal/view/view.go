// Package view decides what the clients of an endpoint see and may call: each endpoint
// has one [View]. [TwoTools] shows the catalogue as the tools inspect and exec,
// [AllTools] shows the tools themselves.
package view

import (
	"context"
	"encoding/json"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/request"
	"mcpx/internal/resources"
	"mcpx/internal/results"
)

// View is what the clients of an endpoint see and may call. It is safe for concurrent use.
type View interface {
	// Traits say what kind of view it is.
	Traits() Traits
	// Greeting is what the handshake with a client says of it. It does not wait.
	Greeting(client *caller.Client) Greeting
	// Tools is the JSON array in the answer to tools/list. It may wait for servers
	// until ctx ends.
	Tools(ctx context.Context, client *caller.Client) json.RawMessage
	// Call runs a tool. A tool that fails is a result. The error is that of ctx, an
	// [UnknownToolError] or, if the tool itself is shown, a [wire.RPCError].
	Call(ctx context.Context, call Call) (*results.Result, error)
	// List is one page of the items of a kind. It may wait for servers until ctx ends. ok
	// is false for a cursor that is none.
	List(ctx context.Context, client *caller.Client, kind catalog.Kind, cursor string) (page resources.Page, ok bool)
	// Send passes a message of another method on to the server that it is for: see [resources.Servers.Send]. An error of a
	// server is a *[Failure] or a [wire.RPCError]. A notification goes to all servers that work for the client alone or, if
	// mcpx does not know it, to the server that the view shows alone.
	Send(ctx context.Context, q *request.Request) (json.RawMessage, error)
	// Topic is [resources.Servers.Topic].
	Topic(ctx context.Context, from request.From, uri string, patient bool) (*resources.Topic, error)
	// Attach makes a client one of the view, until the caller calls detach, which releases everything that belongs to
	// it. With [Attachment.Changed] it only listens, beside that: detach ends the listening alone.
	Attach(client *caller.Client, as Attachment) (detach func())
}

// Traits say what kind of view it is. They may change with a reload.
type Traits struct {
	// Name is the name by which the config knows the view.
	Name string
	// Alone means that the view shows one server as if nothing stood before it: messages that mcpx does not know go
	// to the server.
	Transparent bool
	// Apps means that clients that show the apps of tools are listed those tools.
	Apps bool
	// Resources and Prompts say which kinds are shown at all: the configuration can turn them off.
	Resources, Prompts bool
}

// Greeting is what the handshake says.
type Greeting struct {
	// Instructions are for the model.
	Instructions string
	// Offers is what there is beside tools.
	Offers catalog.Offers
}

// Attachment is what a view does for a client beside its requests. The zero value is a client without a session.
type Attachment struct {
	// Sole means that the client is the only one of this process: what several would share belongs to it.
	Sole bool
	// Changed is called when the client should list a kind again, and Unknown with the notifications of the server
	// of a view that shows one alone. They must not block; nil = the client does not listen.
	Changed func(catalog.Kind)
	Unknown func(method string, params json.RawMessage)
}

// Failure is the error of a server that has not answered a message: in words, and as a JSON object with its code
// (design 7).
type Failure struct {
	Message string
	Data    json.RawMessage
}

func (e *Failure) Error() string { return e.Message }

// Call is one tools/call.
type Call struct {
	request.From
	Name string
	// Arguments are valid JSON, as the client wrote them; nil if absent.
	Arguments json.RawMessage
	// Structured is the wish of the request for structuredContent; if it is empty the
	// view decides by the client.
	Structured StructuredPolicy
	// Code means that a program which the model wrote made the call, and reads its result.
	Code bool
}

// request is the call of a tool for the executor.
func (c *Call) request(server, tool string, arguments json.RawMessage) executor.Request {
	return executor.Request{From: c.From, Server: server, Tool: tool, Arguments: arguments}
}

// UnknownToolError is the error of a call whose tool the view does not have.
type UnknownToolError struct{ Message string }

func (e *UnknownToolError) Error() string { return e.Message }
