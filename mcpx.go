// Package mcpx puts the gateway of the command mcpx into another Go program: clients see many MCP servers as one, with the two
// tools inspect and exec.
//
// Servers come from a config file, which docs/configuration.md describes, or are functions of the program ([Server]). The gateway
// serves clients over a pair of streams ([Gateway.Serve]) or over HTTP ([Gateway.Handler]), and the program itself can call tools
// ([Gateway.Call]). The config's rights, limits, logins, approvals of tool definitions (pin) and audit trail work as in the
// command. Some things only the command can do: for example, it reads a changed config again, serves HTTPS, runs a daemon, or is a
// replica of a cluster.
//
// # Helper processes
//
// mcpx starts the executable of the program again, with the variable MCPX_ROLE, for its helper processes. One helper ends the
// processes of servers if the program is killed (on Windows the system does that); others run filters and programs that clients
// send. In a helper, an init function of mcpx does the work and exits, so main never begins. Init functions of packages that are
// initialised earlier run in helpers too.
package mcpx

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"mcpx/internal/app"
	"mcpx/internal/base/wire"
	"mcpx/internal/executor"
)

// Options say how [New] makes a [Gateway].
type Options struct {
	// Config is the path of a config file. If it is empty, the settings have their defaults, and there are only the servers in
	// Servers.
	Config string
	// Servers are servers that run in this process, by name, in addition to those of the config.
	Servers map[string]Server
	// Insecure lets [Gateway.Handler] answer requests from other machines even if the config has no auth. Set it only if
	// something else checks who may connect.
	Insecure bool
	// Log gets what the command mcpx would write to stderr; nil means that nothing is logged.
	Log *slog.Logger
}

// Server is a function that serves one MCP session with newline-delimited JSON-RPC, until in or ctx ends. The method Listen of
// mcp-go's StdioServer is such a function. If the session breaks, mcpx calls the function again for a new session.
type Server func(ctx context.Context, in io.Reader, out io.Writer) error

// Gateway serves many servers as one. It is safe for concurrent use.
type Gateway struct {
	app      *app.App
	insecure bool
	end      func() // closes the audit trail and the traces; called last

	ending context.Context // ends when Close is called
	cancel context.CancelFunc
	open   sync.WaitGroup // counts the running sessions of Serve and the calls

	mu     sync.Mutex
	closed bool     // set by Close; from then on, nothing is added to open; guarded by mu
	stops  []func() // each ends the requests of one handler; guarded by mu
}

// New makes a gateway, and begins to start its servers in the background. New uses ctx only while it reads the config, whose
// secrets may come from other programs. The caller must call Close.
func New(ctx context.Context, o Options) (*Gateway, error) {
	cfg, err := app.ReadConfig(ctx, o.Config)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	var locals []app.Local
	for _, name := range slices.Sorted(maps.Keys(o.Servers)) {
		locals = append(locals, app.Local{Name: name, Serve: o.Servers[name]})
	}
	a, err := app.New(app.Options{Config: cfg, Profile: app.Embedded, Log: o.Log, Locals: locals})
	if err != nil {
		return nil, err
	}
	end, err := a.Open()
	if err != nil {
		a.Close()
		return nil, err
	}
	g := &Gateway{app: a, insecure: o.Insecure, end: end}
	g.ending, g.cancel = context.WithCancel(context.Background())
	a.Start()
	return g, nil
}

// errClosed is the error of a gateway after Close.
var errClosed = errors.New("mcpx: the gateway is closed")

// begin registers work, such as a session, that Close must end and wait for. working is the context for the work; it ends with ctx,
// or when Close is called. The caller must call end when the work is done. After Close, begin returns errClosed.
func (g *Gateway) begin(ctx context.Context) (working context.Context, end func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, errClosed
	}
	g.open.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(g.ending, func() { cancel(errClosed) })
	return ctx, func() {
		forget()
		cancel(nil)
		g.open.Done()
	}, nil
}

// Serve serves one client with newline-delimited JSON-RPC, until its input or ctx ends, or the gateway is closed. Several
// clients may be served at the same time. A read of in or a write to out that blocks may go on after Serve has returned.
func (g *Gateway) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, end, err := g.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return g.app.Attach(ctx, in, out)
}

// Handler returns a handler for the paths that the command mcpx serves over HTTP. They are the config's http_path (/mcp) and
// the paths below it, where each view (a part of the tools) has a path of its own; /healthz, /readyz, /status and /metrics; the
// status page (/ and /ui/); and paths for which the config has keys such as auth, sse or dial. The handler must get requests
// with these paths unchanged. Except for /healthz and /readyz, it answers only requests whose header Host names this machine,
// the host of auth.resource, or the IP address that the request came to.
//
// The program's own HTTP server must encrypt the connections and limit their number. Some servers have one session for each
// client. For these servers, every request without a principal counts as a new client. Handler returns an error after Close, or
// if the config has tls or cluster, or auth.issuers without auth.resource.
func (g *Gateway) Handler() (http.Handler, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errClosed
	}
	h, stop, err := g.app.Handler(g.insecure)
	if err == nil {
		g.stops = append(g.stops, stop)
	}
	return h, err
}

// Error says why a call was not made, or has no result. Code is an error code of the tool exec, such as SERVER_NOT_FOUND,
// VALIDATION_ERROR or TIMEOUT. Text says what to change, in the words that a model would read.
type Error struct{ Code, Text string }

func (e *Error) Error() string { return e.Text }

// Call checks the arguments against the tool's schema, calls the tool, and returns its result as the server has sent it. It
// waits for a server that is starting. arguments is a JSON object; nil means none. A result with isError is not an error. If
// the call has no result, the error is an [*Error], or the cause of the end of ctx. The program itself is not a principal:
// auth.rights do not apply to it, it shares the limits of all clients without credentials, and tools that a user must confirm
// are refused.
func (g *Gateway) Call(ctx context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	ctx, end, err := g.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	raw, failure := g.app.Executor.Raw(ctx, executor.Request{Server: server, Tool: tool, Arguments: arguments})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case failure != nil:
		var text []string
		for _, block := range failure.Content {
			text = append(text, wire.ReadBlock(block).Text)
		}
		return nil, &Error{failure.Code, strings.Join(text, "\n")}
	}
	return raw, nil
}

// Close ends the servers and all sessions, requests and calls, and waits until they have ended. Only the first Close has an effect;
// a later one returns at once.
func (g *Gateway) Close() {
	g.mu.Lock()
	first := !g.closed
	g.closed = true
	g.mu.Unlock()
	if !first {
		return
	}
	g.cancel()
	for _, stop := range g.stops { // closed is set, so no more are added
		stop()
	}
	g.open.Wait()
	g.app.Close()
	g.end()
}
