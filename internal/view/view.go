// Package view determines what the clients of an endpoint see and may call. Each endpoint has one [View]: [TwoTools] shows the
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

// View determines what the clients of an endpoint see and may call. It is safe for concurrent use.
type View interface {
	// Traits returns the view's name, and which kinds of things it shows.
	Traits() Traits
	// Greeting returns the content of the answer to initialize or server/discover. It does not wait for servers.
	Greeting(client *caller.Client) Greeting
	// Tools returns the JSON array for tools/list. It may wait for servers until ctx ends.
	Tools(ctx context.Context, client *caller.Client) json.RawMessage
	// Saved returns a func that counts the tokens which a client saves because it gets the answer of Tools, and not the tool
	// definitions of all servers. It is nil if the client saves none.
	Saved(client *caller.Client) func() []request.Saving
	// HeaderTool returns the definition of a listed tool if HTTP headers repeat some of its arguments (SEP-2243), otherwise
	// nil. Like Call, it may wait for servers.
	HeaderTool(ctx context.Context, client *caller.Client, name string) *mcp.Tool
	// Call runs a tool. If the tool fails, that is a result, not an error. An error is the error of ctx, an *[UnknownToolError]
	// or, for a tool of a server that the view lists under its own name, a [wire.RPCError].
	Call(ctx context.Context, call Call) (*results.Result, error)
	// List returns one page of the items of a kind. It may wait for servers until ctx ends. ok is false if the cursor is
	// invalid.
	List(ctx context.Context, client *caller.Client, kind catalog.Kind, cursor string) (page resources.Page, ok bool)
	// Send sends a message for which View has no other method. A request goes to the server with the resource, prompt or task
	// that the request names; its error is a *[Failure] or a [wire.RPCError]. A notification with a method that mcpx knows goes
	// to every server with a session that belongs only to this client. Any other notification goes to the server of a transparent
	// view; if the view is not transparent, it goes to no server.
	Send(ctx context.Context, q *request.Request) (json.RawMessage, error)
	// Topic returns the resource with this URI, so that the client can follow its changes. If patient is true, the client
	// follows it even while the server cannot be reached.
	Topic(ctx context.Context, from request.From, uri string, patient bool) (*resources.Topic, error)
	// Attach connects a client to the view. If [Attachment.Changed] is nil, detach releases everything that belongs to the client.
	// If it is set, Attach also makes the client a listener, and detach removes only the listener.
	Attach(client *caller.Client, as Attachment) (detach func())
}

// Traits describe a view. They may change when the config is reloaded.
type Traits struct {
	// Name is the view's name in the config.
	Name string
	// Transparent means that the view shows a single server as if mcpx were not there: messages that mcpx does not know are
	// sent to that server.
	Transparent bool
	// Apps means that tools with apps are listed for clients that show apps.
	Apps bool
	// Resources and Prompts say whether the view shows these kinds at all; the config can turn them off.
	Resources, Prompts bool
}

// Greeting is the content of the answer to initialize or server/discover.
type Greeting struct {
	// Instructions are for the model.
	Instructions string
	// Offers says whether there are resources, prompts and other capabilities.
	Offers catalog.Offers
	// RunsTasks means that the view shows the tools themselves, and that clients of the legacy era can run some of the tools as
	// tasks.
	RunsTasks bool
}

// Attachment says what a view does for a client besides answering its requests. For a client without a session, all fields are
// zero.
type Attachment struct {
	// Sole means that this process has only this client, so its sessions with servers need not be shared with other clients.
	Sole bool
	// Changed is called when the client should list a kind again. Unknown is called with notifications that mcpx does not know,
	// from the server of a transparent view. Neither may block. If Changed is nil, the client does not listen, and Unknown is not
	// called either.
	Changed func(catalog.Kind)
	Unknown func(method string, params json.RawMessage)
}

// Failure is the error of a message to a server, unless the server has answered with a JSON-RPC error. Message is the text; Data is
// a JSON object with an error code.
type Failure struct {
	Message string
	Data    json.RawMessage
}

func (e *Failure) Error() string { return e.Message }

// Call is one tools/call.
type Call struct {
	request.From
	Name string
	// Arguments is valid JSON, as the client wrote it; nil if missing.
	Arguments json.RawMessage
	// Structured is the choice for structuredContent in this request; if it is empty, the client's settings apply.
	Structured StructuredPolicy
	// Task has the params with which a client of the legacy era asks to run the call as a task; nil if it does not. It is used
	// only by views that show the tools themselves.
	Task json.RawMessage
	// Code means that the call is made by a program that the model wrote, and that this program reads the result.
	Code bool
}

// request makes the request to the executor that calls a tool of a server with these arguments.
func (c *Call) request(server, tool string, arguments json.RawMessage) executor.Request {
	return executor.Request{From: c.From, Server: server, Tool: tool, Arguments: arguments}
}

// UnknownToolError is the error for a call of a tool that the view does not have.
type UnknownToolError struct{ Message string }

func (e *UnknownToolError) Error() string { return e.Message }
