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
)

// View has the tools that the clients of an endpoint see and may call. It is safe
// for concurrent use.
type View interface {
	// Name is the name by which the config knows the view.
	Name() string
	// Instructions are the instructions for the model in the handshake.
	Instructions(client *caller.Client) string
	// Tools is the JSON array in the answer to tools/list. It may wait for servers
	// until ctx ends.
	Tools(ctx context.Context, client *caller.Client) json.RawMessage
	// Call runs a tool. A tool that fails is a result. The error is that of ctx, an
	// [UnknownToolError] or, if the tool itself is shown, an [upstream.RPCError].
	Call(ctx context.Context, call Call) (*executor.Result, error)
	// Has reports whether clients are shown items of a kind, at all: the configuration
	// can turn resources and prompts off.
	Has(kind catalog.Kind) bool
	// Offers is what there is beside tools, for the handshake. It does not wait.
	Offers(client *caller.Client) catalog.Offers
	// List is one page of the items of a kind. It may wait for servers until ctx ends. ok
	// is false for a cursor that is none.
	List(ctx context.Context, client *caller.Client, kind catalog.Kind, cursor string) (page resources.Page, ok bool)
	// Relay is [resources.Servers.Relay], and Topic [resources.Servers.Topic].
	Relay(ctx context.Context, r resources.Request) (json.RawMessage, error)
	Topic(ctx context.Context, client *caller.Client, uri string) (*resources.Topic, error)
	// Explain says what an error of Relay, or of a topic, is: in words, and as a JSON
	// object with its code (design 7).
	Explain(method string, err *resources.ServerError) (message string, data json.RawMessage)
	// OnChange sets a func that a goroutine of the view calls when the clients should
	// list a kind again. It must not block.
	OnChange(changed func(catalog.Kind))
	// Watch calls changed as the func of OnChange, and unknown as that of OnUnknown, for what
	// a client of one principal may see, until the caller calls stop.
	Watch(client *caller.Client, changed func(catalog.Kind), unknown func(method string, params json.RawMessage)) (stop func())
	// Own makes a client the only one of this process: what several would share belongs
	// to it.
	Own(client *caller.Client)
	// PassOn sends a notification of a client to the servers that work for it alone.
	PassOn(client *caller.Client, method string, params json.RawMessage)
	// Apps reports whether clients that show the apps of tools are listed those tools.
	Apps() bool
	// Alone reports whether the view shows one server as if nothing stood before it:
	// requests that mcpx does not know go to Relay, and notifications to Tell. OnUnknown
	// sets a func that gets the notifications of the server, from any goroutine; it must
	// not block.
	Alone() bool
	Tell(client *caller.Client, method string, params json.RawMessage)
	OnUnknown(tell func(method string, params json.RawMessage))
	// Forget releases everything that belongs to a client that is gone.
	Forget(client *caller.Client)
}

// Call is one tools/call.
type Call struct {
	Client *caller.Client
	Name   string
	// Arguments are valid JSON, as the client wrote them; nil if absent.
	Arguments json.RawMessage
	// Structured is the wish of the request for structuredContent; if it is empty the
	// view decides by the client.
	Structured StructuredPolicy
	// Code means that a program which the model wrote made the call, and reads its result.
	Code bool
	// Input answers an input_required result of the same call.
	Input request.Input
	// Meta are the members of the request's _meta that go on to the upstream.
	Meta []request.Meta
	// OnProgress and OnLog get the params of notifications that belong to the call.
	// They must not block; they are nil if the client wants no such notifications.
	// LogLevel is the least severe level that the client wants.
	OnProgress, OnLog func(params json.RawMessage)
	LogLevel          string
	// Afterwards is that of [executor.Request].
	Afterwards func(do func())
}

// request is the call of a tool for the executor.
func (c *Call) request(server, tool string, arguments json.RawMessage) executor.Request {
	return executor.Request{
		Server: server, Tool: tool, Arguments: arguments, Client: c.Client, Meta: c.Meta, Input: c.Input,
		OnProgress: c.OnProgress, OnLog: c.OnLog, LogLevel: c.LogLevel, Afterwards: c.Afterwards,
	}
}

// UnknownToolError is the error of a call whose tool the view does not have.
type UnknownToolError struct{ Message string }

func (e *UnknownToolError) Error() string { return e.Message }
