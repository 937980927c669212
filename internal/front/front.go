// Package front is the MCP server that clients see: the two tools inspect and
// exec, in both protocol eras, over stdio (here) and HTTP (with httpd around
// it).
package front

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"mcpx/internal/catalog"
	"mcpx/internal/executor"
	"mcpx/internal/registry"
)

// The names of the two tools.
const (
	InspectTool = "inspect"
	ExecTool    = "exec"
)

// Options say how the tools are shown. The zero value is the design's default.
type Options struct {
	Version string
	// BudgetTokens bounds the description of inspect, in o200k tokens; 0 = 2000.
	BudgetTokens int
	// BudgetChars bounds it in UTF-16 units for every client; 0 = no bound.
	BudgetChars int
	// MaxDescription cuts the descriptions of parameters; 0 = 300 runes.
	MaxDescription int
	// JSONSchema shows schemas as minified JSON instead of TypeScript.
	JSONSchema bool
	// NoTOON says that no result is TOON.
	NoTOON bool
	// Structured is the policy for structuredContent.
	Structured StructuredPolicy
	// Clients overrides the policy for clients by name, in order.
	Clients []ClientRule
	// StartupWait bounds how long tools/list waits, counted from New, for
	// servers that were never tried; 0 = 5 s.
	StartupWait time.Duration
	// Logger may be nil (discard).
	Logger *slog.Logger

	// writeWithin bounds one write to a client over HTTP; 0 = 2 min: 64 MiB at
	// half a megabyte a second.
	writeWithin time.Duration
}

// Front answers clients. [Front.Close] ends its goroutines.
type Front struct {
	registry *registry.Registry
	executor *executor.Executor
	current  atomic.Pointer[Options]
	ruled    atomic.Bool // the rules for clients have changed, and nobody was told
	log      *slog.Logger
	server   *server.MCPServer
	began    time.Time
	texts    texts
	sessions sessions
	requests atomic.Int64 // of clients without a session

	listeners listeners

	serving sync.Mutex
	servers []*server.StreamableHTTPServer // of HTTP; each has a goroutine of mcp-go's

	calls    context.Context // ends the calls over HTTP, with a cause
	endCalls context.CancelCauseFunc

	need     chan struct{} // closed when upstreams are needed, or no longer in the way
	needOnce sync.Once
	poke     chan struct{} // holds one: the catalogue may have changed
	stop     chan struct{}
	closed   sync.Once
	loops    sync.WaitGroup
}

// New makes a front for r and e. Call it before r is started.
func New(r *registry.Registry, e *executor.Executor, options Options) *Front {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Front{
		registry: r, executor: e, log: options.Logger,
		began: time.Now(),
		need:  make(chan struct{}),
		poke:  make(chan struct{}, 1), stop: make(chan struct{}),
	}
	f.current.Store(options.withDefaults())
	f.calls, f.endCalls = context.WithCancelCause(context.Background())
	hooks := &server.Hooks{}
	hooks.AddBeforeListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest) { f.awaitCatalogue(ctx) })
	hooks.AddAfterListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
		result.Tools = f.tools(clientOf(ctx))
		f.needed()
	})
	hooks.AddAfterInitialize(func(ctx context.Context, _ any, request *mcp.InitializeRequest, result *mcp.InitializeResult) {
		if id := sessionOf(ctx); id != "" {
			f.sessions.add(id, request.Params.ClientInfo.Name)
		}
		result.Instructions = f.texts.instructions(r.Snapshot())
	})
	hooks.AddAfterDiscover(func(_ context.Context, _ any, _ *mcp.DiscoverRequest, result *mcp.DiscoverResult) {
		result.Instructions = f.texts.instructions(r.Snapshot())
	})
	hooks.AddOnUnregisterSession(func(_ context.Context, session server.ClientSession) {
		f.sessions.remove(session.SessionID())
		r.ForgetClient(session.SessionID())
	})
	f.server = server.NewMCPServer("mcpx", options.Version,
		server.WithToolCapabilities(true),
		server.WithLogging(),
		server.WithHooks(hooks),
		server.WithRecovery(),
		server.WithInstructions(" "), // replaced by the hooks above
		server.WithMethodCacheHints(mcp.MethodToolsList, 0, mcp.CacheScopePrivate),
	)
	f.server.AddTool(f.inspectTool(""), f.handle)
	f.server.AddTool(f.execTool(hints{}), f.handle)
	r.OnChange(f.look)
	f.loops.Add(1)
	go f.announce()
	return f
}

// SetOptions replaces the options, but for the version and the logger. Clients
// are told where that changes what they see.
func (f *Front) SetOptions(options Options) {
	before := f.current.Swap(options.withDefaults())
	if !slices.Equal(before.Clients, options.Clients) {
		f.ruled.Store(true) // what is compared is the text for a client without rules
	}
	f.look()
}

func (o Options) withDefaults() *Options {
	if o.MaxDescription <= 0 {
		o.MaxDescription = 300
	}
	if o.writeWithin <= 0 {
		o.writeWithin = 2 * time.Minute
	}
	if o.StartupWait <= 0 {
		o.StartupWait = 5 * time.Second
	}
	return &o
}

func (f *Front) options() *Options { return f.current.Load() }

// look asks for a look at whether the texts have changed.
func (f *Front) look() {
	select {
	case f.poke <- struct{}{}:
	default:
	}
}

// Description is that of inspect as a client without limits of its own sees it.
func (f *Front) Description() string {
	return f.texts.inspect(f.registry.Snapshot(), f.view(""))
}

// Protocols are the revisions that clients may speak, newest first.
func Protocols() []string { return mcp.ValidProtocolVersions }

// Needed is closed when the upstreams are needed for the first time, or when the
// first list of tools has been answered from what is known: starting many
// processes before that would only delay the first answers.
func (f *Front) Needed() <-chan struct{} { return f.need }

func (f *Front) needed() { f.needOnce.Do(func() { close(f.need) }) }

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
	f.closed.Do(func() { close(f.stop) })
	f.EndCalls()
	f.serving.Lock()
	for _, one := range f.servers {
		_ = one.Shutdown(context.Background()) // it listens nowhere, so there is nothing to wait for
	}
	f.servers = nil
	f.serving.Unlock()
	f.loops.Wait()
}

// awaitCatalogue waits for servers that were never tried before, at most until
// StartupWait after the start.
func (f *Front) awaitCatalogue(ctx context.Context) {
	if starting(f.registry.Snapshot()) {
		f.needed()
	}
	ctx, cancel := context.WithDeadline(ctx, f.began.Add(f.options().StartupWait))
	defer cancel()
	f.registry.WaitKnown(ctx)
}

// starting reports whether the first list of a server is still to come.
func starting(snap *catalog.Snapshot) bool {
	return slices.ContainsFunc(snap.Servers, func(s catalog.Server) bool { return !s.Known && s.State == catalog.Connecting })
}

// announceAfter gathers the changes of a moment into one notification: each costs
// a client its prompt cache. While servers are starting more is about to come, and
// the moment lasts for up to announceStarts of them.
const (
	announceAfter  = 150 * time.Millisecond
	announceStarts = 10
	// announceMost bounds the notifications of a minute: a catalogue that is never
	// the same twice, with the time in a description, is not told each second.
	announceMost = 12
)

// announce tells the clients when the texts of the tools have changed. A change
// of state alone changes no text. It ends with Close.
func (f *Front) announce() {
	defer f.loops.Done()
	first, firstView := f.registry.Snapshot(), f.view("")
	last, lastHints, made := "", hintsOf(first), false
	lastFeatures := firstView.features
	var told []time.Time // the last announceMost of them
	for {
		select {
		case <-f.poke:
		case <-f.stop:
			return
		}
		if len(told) == announceMost && !f.pause(time.Minute-time.Since(told[0])) {
			return
		}
		for moments := 0; moments == 0 || (moments < announceStarts && starting(f.registry.Snapshot())); moments++ {
			if !f.pause(announceAfter) {
				return
			}
		}
		if !made {
			// Not before there is something to compare: the start has better to do.
			last, made = firstView.inspect(first), true
		}
		snap := f.registry.Snapshot()
		view := f.view("")
		text, flags, ruled := f.texts.inspect(snap, view), hintsOf(snap), f.ruled.Swap(false)
		if text == last && flags == lastHints && view.features == lastFeatures && !ruled {
			continue
		}
		last, lastHints, lastFeatures = text, flags, view.features
		told = append(told, time.Now())
		told = told[max(0, len(told)-announceMost):]
		f.server.SendNotificationToAllClients(mcp.MethodNotificationToolsListChanged, nil)
		f.listeners.tell()
	}
}

// pause waits; it reports false if the front is closed meanwhile.
func (f *Front) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-f.stop:
		return false
	}
}

// tools are the two tools as the client sees them.
func (f *Front) tools(client string) []mcp.Tool {
	snap := f.registry.Snapshot()
	return []mcp.Tool{
		f.inspectTool(f.texts.inspect(snap, f.view(client))),
		f.execTool(hintsOf(snap)),
	}
}

// hints are the annotations that exec can truthfully carry: what all exposed
// tools have in common.
type hints struct{ readOnly, destructive, idempotent, openWorld bool }

func hintsOf(snap *catalog.Snapshot) hints {
	h := hints{readOnly: true, idempotent: true}
	known := 0
	for i := range snap.Servers {
		s := &snap.Servers[i]
		if s.State != catalog.Disabled && !s.Known {
			return hints{destructive: true, openWorld: true}
		}
		for j := range s.Tools {
			t := s.Tools[j].Hints
			known++
			h.readOnly = h.readOnly && t.IsReadOnly()
			h.destructive = h.destructive || t.IsDestructive()
			h.idempotent = h.idempotent && (t.IsIdempotent() || t.IsReadOnly())
			h.openWorld = h.openWorld || t.IsOpenWorld()
		}
	}
	if known == 0 {
		return hints{destructive: true, openWorld: true}
	}
	return h
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

// toolMeta asks Claude Code to load the tools at once and to let long results
// through (design 7).
func toolMeta() *mcp.Meta {
	return &mcp.Meta{AdditionalFields: map[string]any{
		"anthropic/alwaysLoad":         true,
		"anthropic/maxResultSizeChars": json.Number("500000"),
	}}
}
