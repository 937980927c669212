// Package view decides what the clients of an endpoint see and may call. Each endpoint has one [View]: [TwoTools] shows the
// catalogue as the tools inspect and exec, [AllTools] shows the tools themselves.
package view

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/request"
	"mcpx/internal/resources"
	"mcpx/internal/results"
)

// View is what the clients of an endpoint see and may call. Safe for concurrent use.
type View interface {
	// Traits describe the view.
	Traits() Traits
	// Greeting returns the content of the handshake with a client. It does not wait.
	Greeting(client *caller.Client) Greeting
	// Tools returns the JSON array for tools/list. It may wait for servers until ctx ends.
	Tools(ctx context.Context, client *caller.Client) json.RawMessage
	// HeaderTool returns the definition of a listed tool of which HTTP headers repeat arguments (SEP-2243); nil for others. It
	// waits for servers like Call.
	HeaderTool(ctx context.Context, client *caller.Client, name string) *mcp.Tool
	// Call runs a tool. A tool that fails is a result. The error is ctx's, an [UnknownToolError] or, if the tool itself is
	// shown, a [wire.RPCError].
	Call(ctx context.Context, call Call) (*results.Result, error)
	// List returns one page of the items of a kind. It may wait for servers until ctx ends. ok is false for an invalid
	// cursor.
	List(ctx context.Context, client *caller.Client, kind catalog.Kind, cursor string) (page resources.Page, ok bool)
	// Send passes any other message on to the server that it is for: see [resources.Servers.Send]. An error of a server is a
	// *[Failure] or a [wire.RPCError]. A notification goes to all servers that work only for this client or, if mcpx does not
	// know it, to the server of a transparent view.
	Send(ctx context.Context, q *request.Request) (json.RawMessage, error)
	// Topic is [resources.Servers.Topic].
	Topic(ctx context.Context, from request.From, uri string, patient bool) (*resources.Topic, error)
	// Attach connects a client to the view until the caller calls detach, which releases everything that belongs to the
	// client. With [Attachment.Changed] it adds a listener instead, and detach only ends the listening.
	Attach(client *caller.Client, as Attachment) (detach func())
}

// Traits describe a view. They may change with a reload.
type Traits struct {
	// Name is the view's name in the config.
	Name string
	// Transparent means that the view passes one server through as if mcpx were not there: messages that mcpx does not know
	// go to that server.
	Transparent bool
	// Apps means that tools with apps are listed for clients that show apps.
	Apps bool
	// Resources and Prompts report which kinds are shown at all; the config can turn them off.
	Resources, Prompts bool
}

// Greeting is the content of the handshake.
type Greeting struct {
	// Instructions are for the model.
	Instructions string
	// Offers describes the resources, prompts and other capabilities.
	Offers catalog.Offers
	// RunsTasks means that tools which are listed themselves run as tasks of the legacy era, for clients that want that.
	RunsTasks bool
}

// Attachment says what a view does for a client besides its requests. It is zero for a client without a session.
type Attachment struct {
	// Sole means that the client is the process's only one and need not share upstream sessions.
	Sole bool
	// Changed is called when the client should list a kind again; Unknown with notifications of a transparent view's server
	// that mcpx does not know. They must not block; nil = the client does not listen.
	Changed func(catalog.Kind)
	Unknown func(method string, params json.RawMessage)
}

// Failure is the error of a message that a server has not answered, as text and as a JSON object with its code (design 7).
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
	// Structured is the request's own choice for structuredContent; if empty, the client's settings apply.
	Structured StructuredPolicy
	// Task is [executor.Request.Task], for a tool that is listed itself.
	Task json.RawMessage
	// Code means that the call is made by a program that the model wrote, which reads the result.
	Code bool
}

// request makes the executor's request for a tool.
func (c *Call) request(server, tool string, arguments json.RawMessage) executor.Request {
	return executor.Request{From: c.From, Server: server, Tool: tool, Arguments: arguments}
}

// UnknownToolError is the error of a call of a tool that the view does not have.
type UnknownToolError struct{ Message string }

func (e *UnknownToolError) Error() string { return e.Message }
