// Package view says what clients are shown and may call: each endpoint has one
// [View]. [TwoTools] shows the whole catalogue as the tools inspect and exec.
package view

import (
	"context"
	"encoding/json"

	"mcpx/internal/executor"
	"mcpx/internal/upstream"
)

// View is what the clients of an endpoint are shown and may call. It is safe for
// concurrent use.
type View interface {
	// Instructions is the text for the model that goes with the handshake.
	Instructions(client *upstream.Client) string
	// Tools is the JSON array of the answer to tools/list. It may wait for servers,
	// not beyond the end of ctx.
	Tools(ctx context.Context, client *upstream.Client) json.RawMessage
	// Call runs a tool. A tool that fails is a result. The error is that of ctx, or
	// an [UnknownToolError].
	Call(ctx context.Context, call Call) (*executor.Result, error)
	// OnChange sets the func that is called, from a goroutine of the view, when the
	// clients should list the tools again. It must not block.
	OnChange(changed func())
	// Forget ends what is kept for a client that is gone.
	Forget(client *upstream.Client)
}

// Call is one tools/call.
type Call struct {
	Client *upstream.Client
	Name   string
	// Arguments are valid JSON, as the client wrote them; nil where it wrote none.
	Arguments json.RawMessage
	// Structured is what the request itself says of structuredContent; empty: the
	// view decides by the client.
	Structured StructuredPolicy
	// Meta are members of the request's _meta that upstreams get too.
	Meta []upstream.MetaMember
	// OnProgress and OnLog get the params of notifications that belong to the call.
	// They must not block, and are nil where the client asked for none. LogLevel is
	// the least severe level that the client wants.
	OnProgress, OnLog func(params json.RawMessage)
	LogLevel          string
}

// UnknownToolError says that the view has no tool of that name.
type UnknownToolError struct{ Message string }

func (e *UnknownToolError) Error() string { return e.Message }
