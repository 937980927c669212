// Package front is the MCP server that clients see: the two tools inspect and
// exec, in both protocol eras, over stdio (here) and HTTP (with httpd around
// it).
package front

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"mcpx/internal/upstream"
	"mcpx/internal/view"
)

// Options are what a front needs beside its view. The zero value is fine.
type Options struct {
	// Version is that of mcpx, as clients are told it.
	Version string
	// Logger may be nil (discard).
	Logger *slog.Logger

	// writeWithin bounds one write to a client over HTTP; 0 = 2 min: 64 MiB at
	// half a megabyte a second.
	writeWithin time.Duration
}

// Front answers the clients of one view. [Front.Close] ends what it started.
type Front struct {
	view     view.View
	options  Options
	log      *slog.Logger
	server   *server.MCPServer
	sessions sessions
	requests atomic.Int64 // of clients without a session

	listeners listeners

	serving sync.Mutex
	servers []*server.StreamableHTTPServer // of HTTP; each has a goroutine of mcp-go's

	calls    context.Context // ends the calls over HTTP, with a cause
	endCalls context.CancelCauseFunc
}

// New makes a front that shows v.
func New(v view.View, options Options) *Front {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.writeWithin <= 0 {
		options.writeWithin = 2 * time.Minute
	}
	f := &Front{view: v, options: options, log: options.Logger}
	f.calls, f.endCalls = context.WithCancelCause(context.Background())
	hooks := &server.Hooks{}
	hooks.AddAfterListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
		result.Tools = toolsOf(v.Tools(ctx, &upstream.Client{Name: clientOf(ctx)}))
	})
	hooks.AddAfterInitialize(func(ctx context.Context, _ any, request *mcp.InitializeRequest, result *mcp.InitializeResult) {
		if id := sessionOf(ctx); id != "" {
			f.sessions.add(id, request.Params.ClientInfo.Name)
		}
		result.Instructions = v.Instructions(nil)
	})
	hooks.AddAfterDiscover(func(_ context.Context, _ any, _ *mcp.DiscoverRequest, result *mcp.DiscoverResult) {
		result.Instructions = v.Instructions(nil)
	})
	hooks.AddOnUnregisterSession(func(_ context.Context, session server.ClientSession) {
		f.sessions.remove(session.SessionID())
		v.Forget(&upstream.Client{ID: session.SessionID()})
	})
	f.server = server.NewMCPServer("mcpx", options.Version,
		server.WithToolCapabilities(true),
		server.WithLogging(),
		server.WithHooks(hooks),
		server.WithRecovery(),
		server.WithInstructions(" "), // replaced by the hooks above
		server.WithMethodCacheHints(mcp.MethodToolsList, 0, mcp.CacheScopePrivate),
	)
	v.OnChange(func() {
		f.server.SendNotificationToAllClients(mcp.MethodNotificationToolsListChanged, nil)
		f.listeners.tell()
	})
	return f
}

// Protocols are the revisions that clients may speak, newest first.
func Protocols() []string { return mcp.ValidProtocolVersions }

// EndCalls ends the open calls over HTTP, each in an error: for the end of the
// server, after it has waited for them. The ends of their requests' contexts would
// leave them without an answer.
func (f *Front) EndCalls() { f.endCalls(errStopping) }

// callContext is the context of a call over HTTP, of a session or none.
func (f *Front) callContext(ctx context.Context, session *httpSession) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(f.calls, func() { cancel(context.Cause(f.calls)) })
	leave := func() bool { return true }
	if session != nil {
		leave = context.AfterFunc(session.alive, func() { cancel(context.Cause(session.alive)) })
	}
	return ctx, func() {
		stop()
		leave()
		cancel(nil)
	}
}

// Close ends what New and HTTP started.
func (f *Front) Close() {
	f.EndCalls()
	f.serving.Lock()
	for _, one := range f.servers {
		_ = one.Shutdown(context.Background()) // it listens nowhere, so there is nothing to wait for
	}
	f.servers = nil
	f.serving.Unlock()
}

// clientOf is the clientInfo.name of whoever sent the request, in both eras.
func clientOf(ctx context.Context) string {
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.ClientInfo != nil {
		return info.ClientInfo.Name
	}
	if session, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok {
		return session.GetClientInfo().Name
	}
	return ""
}

// sessionOf is the id of the client's session, empty in the modern era over
// HTTP, which has none.
func sessionOf(ctx context.Context) string {
	if session := server.ClientSessionFromContext(ctx); session != nil {
		return session.SessionID()
	}
	return ""
}

// toolsOf reads the tools of a view as mcp-go has them.
func toolsOf(list json.RawMessage) (tools []mcp.Tool) {
	var read []struct {
		Name, Description string
		InputSchema       json.RawMessage
		Annotations       mcp.ToolAnnotation
		Meta              *mcp.Meta `json:"_meta"`
	}
	_ = json.Unmarshal(list, &read)
	for _, one := range read {
		tool := mcp.NewToolWithRawSchema(one.Name, one.Description, one.InputSchema)
		tool.Annotations, tool.Meta = one.Annotations, one.Meta
		tools = append(tools, tool)
	}
	return tools
}
