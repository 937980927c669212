// Package executor is one call: find the tool, check the arguments, call it
// over the session that is open, and shape the result.
package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"mcpx/internal/arguments"
	"mcpx/internal/catalog"
	"mcpx/internal/compress"
	"mcpx/internal/pages"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/upstream"
)

// Executor runs calls. Safe for concurrent use.
type Executor struct {
	registry   *registry.Registry
	catalogues policy.Catalogues
	current    atomic.Pointer[settings]
	log        *slog.Logger
	schemas    arguments.Schemas
	store      pages.Store
	builtin    *catalog.Server
	account    account
}

// New makes an executor of calls to r's servers.
func New(r *registry.Registry, options Options) *Executor {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Executor{registry: r, log: options.Logger, builtin: builtin()}
	e.SetOptions(options)
	return e
}

// SetOptions replaces the options, but for the logger. Calls that are under way
// keep theirs.
func (e *Executor) SetOptions(options Options) {
	if options.ExecWait <= 0 {
		options.ExecWait = 20 * time.Second
	}
	e.current.Store(&settings{Options: options})
}

// run is one call, or one question about the catalogue: the executor with the
// options of when it began.
type run struct {
	*Executor
	options *settings
}

func (e *Executor) begin() run { return run{e, e.current.Load()} }

// Request is one call as the client sent it.
type Request struct {
	// Catalogue is what the caller may see, from [Executor.Catalogue]: all of the
	// request works on this one. Nil = as it is when the call begins.
	Catalogue    *catalog.Snapshot
	Server, Tool string
	// Arguments is raw JSON: an object, a string that holds one, or absent.
	Arguments json.RawMessage
	// Client sent the call. Results that are kept belong to its principal, without a
	// client to this process.
	Client *upstream.Client
	// Select is a jq filter on the result's JSON, empty = none.
	Select string
	// Structured says that the client gets structuredContent (design 7); else
	// what only it says becomes a text block.
	Structured bool
	Meta       []upstream.MetaMember
	// OnProgress gets the params of the upstream's progress; may be nil. It must
	// not block.
	OnProgress func(params json.RawMessage)
	// OnLog gets the params of log messages that the upstream sends meanwhile;
	// may be nil. It must not block. LogLevel is what the upstream is asked for.
	OnLog    func(params json.RawMessage)
	LogLevel string

	began time.Time
}

// begun fills in what a request has when work on it begins.
func (e *Executor) begun(r Request) Request {
	if r.Catalogue == nil {
		r.Catalogue = e.Catalogue(r.Client)
	}
	r.began = time.Now()
	return r
}

func (r *Request) principal() string {
	if r.Client == nil {
		return ""
	}
	return r.Client.Principal
}

// Result is a tool result, its parts as raw JSON.
type Result struct {
	// Content are the blocks in order.
	Content []json.RawMessage
	// Structured is nil where the answer has no structuredContent.
	Structured json.RawMessage
	// Meta is the raw _meta object, nil where absent.
	Meta    json.RawMessage
	IsError bool

	code           string // of the failure that this is
	received, sent int    // tokens of the upstream's texts, and of these
}

// Exec runs one call. It always returns a result: a failure is one with IsError.
// The only error is ctx's, when nobody waits for the result any more.
func (e *Executor) Exec(ctx context.Context, r Request) (*Result, error) {
	r = e.begun(r)
	record := Record{Principal: r.principal(), Server: r.Server, Tool: r.Tool}
	result, answered := e.begin().exec(ctx, &r)
	record.Answered, record.Outcome = answered, cmp.Or(result.code, outcomeResult)
	if result.IsError && result.code == "" {
		record.Outcome = outcomeToolError
	}
	if ctx.Err() != nil {
		result, record.Answered, record.Outcome = nil, false, outcomeCancelled
	} else {
		record.Received, record.Sent = result.received, result.sent
	}
	record.Duration = time.Since(r.began)
	e.observe(ctx, record)
	return result, ctx.Err()
}

// exec runs one call; answered says that the result comes of an upstream's. It is
// of no use when ctx has ended.
func (e run) exec(ctx context.Context, r *Request) (result *Result, answered bool) {
	var t target
	var err error
	if r.Server == Builtin {
		result, t, err = e.readResult(ctx, r)
	} else {
		var raw json.RawMessage
		if raw, t, err = e.call(ctx, r); err == nil {
			result, err = e.shape(ctx, raw, *r, t)
		}
	}
	if err != nil {
		return e.fault(*r, t, err).Result(r.Structured), false
	}
	result.annotate(r.Tool, t.notes)
	return result, r.Server != Builtin
}

// Raw runs one call and returns the upstream's result as it came, or a fault.
func (e *Executor) Raw(ctx context.Context, r Request) (json.RawMessage, *Result) {
	run, r := e.begin(), e.begun(r)
	raw, target, err := run.call(ctx, &r)
	if err != nil {
		return nil, run.fault(r, target, err).Result(true)
	}
	return raw, nil
}

// Catalogue is the catalogue as a client may see it now. Whoever serves a request
// asks for it once, and hands it down.
func (e *Executor) Catalogue(*upstream.Client) *catalog.Snapshot {
	return e.catalogues.Of(e.registry.Snapshot())
}

// target is what a request turned out to mean.
type target struct {
	server    *catalog.Server
	tool      *catalog.Tool
	arguments json.RawMessage
	notes     arguments.Notes // on how they were read
	settings  toolSettings
}

// call finds, checks and calls, in this order (design 7). Where a reload has put
// another server in the place of the one that was found, what the caller may do
// there is another question, and all of it begins again.
func (e run) call(ctx context.Context, r *Request) (json.RawMessage, target, error) {
	for {
		raw, t, err := e.attempt(ctx, r)
		if err == nil {
			return raw, t, nil
		}
		var replaced *registry.ReplacedError
		if !errors.As(err, &replaced) {
			return nil, t, err
		}
		e.options = e.current.Load()
		e.awaitServer(ctx, r)
	}
}

// attempt is one way through call.
func (e run) attempt(ctx context.Context, r *Request) (json.RawMessage, target, error) {
	t, err := e.find(ctx, r)
	if err != nil {
		return nil, t, err
	}
	t.settings = e.options.tool(r.Server, r.Tool)
	if t.arguments, t.notes, err = e.schemas.Read(r.Arguments, t.tool.InputSchema, !t.settings.unchecked); err != nil {
		return nil, t, err
	}
	raw, err := e.registry.Call(ctx, t.server, upstream.Request{
		Method: "tools/call", Params: upstream.ToolParams(r.Tool, t.arguments), Meta: r.Meta,
		Repeatable: t.tool.Hints.IsIdempotent() || t.tool.Hints.IsReadOnly(),
		Wait:       e.waitLeft(r),
		Timeout:    t.settings.timeout, Idle: t.settings.idle,
		OnProgress: r.OnProgress,
		Client:     r.Client,
		OnLog:      r.OnLog,
		LogLevel:   r.LogLevel,
	})
	return raw, t, err
}

// waitLeft is how long a request may still wait for a server.
func (e run) waitLeft(r *Request) time.Duration {
	return max(e.options.ExecWait-time.Since(r.began), time.Nanosecond) // 0 is no bound
}

// awaitServer waits for the server of a request, and gives the request the
// catalogue as it is then. Nowhere else does a request get another catalogue than
// the one that it came with: what it waited for is not in that one.
func (e run) awaitServer(ctx context.Context, r *Request) {
	bounded, cancel := context.WithTimeout(ctx, e.waitLeft(r))
	defer cancel()
	e.registry.WaitServer(bounded, r.Server)
	r.Catalogue = e.Catalogue(r.Client)
}

// FindServer looks a server up in a catalogue of the client's. It waits for one
// whose tools are not known yet like a call does, and returns the catalogue of
// after that. If the client wants a certain tool, the fault of an unknown server
// names the servers that have it.
func (e *Executor) FindServer(ctx context.Context, client *upstream.Client, seen *catalog.Snapshot, name, tool string) (*catalog.Snapshot, *catalog.Server, *Fault) {
	run, r := e.begin(), e.begun(Request{Client: client, Catalogue: seen, Server: name, Tool: tool})
	s, err := run.findServer(ctx, &r)
	if err != nil {
		return r.Catalogue, nil, run.fault(r, target{}, err)
	}
	return r.Catalogue, s, nil
}

// ToolNotFound is the fault of a tool that s does not have. It names the servers in
// the caller's catalogue that have it.
func (e *Executor) ToolNotFound(seen *catalog.Snapshot, s *catalog.Server, name string) *Fault {
	missing := &notFoundError{what: "tool", server: s.Name, name: name, known: s.ToolNames(), owners: e.owners(seen, name, s.Name)}
	return missing.fault()
}

// findServer finds the server of a request, whose catalogue is a newer one where it
// had to be waited for.
func (e run) findServer(ctx context.Context, r *Request) (*catalog.Server, error) {
	if r.Server == Builtin {
		return e.builtin, nil
	}
	s, ok := r.Catalogue.Server(r.Server)
	if ok && !s.Known && s.State == catalog.Connecting {
		e.awaitServer(ctx, r)
		s, ok = r.Catalogue.Server(r.Server)
	}
	switch {
	case !ok:
		missing := &notFoundError{what: "server", name: r.Server, known: r.Catalogue.ServerNames()}
		if r.Tool != "" {
			missing.owners = e.owners(r.Catalogue, r.Tool, "")
		}
		return nil, missing
	case !s.Known:
		return nil, &upstream.UnavailableError{
			State: s.State, Reason: s.Reason, RetryAfter: time.Duration(s.RetryAfter * float64(time.Second)),
		}
	}
	return s, nil
}

func (e run) find(ctx context.Context, r *Request) (target, error) {
	s, err := e.findServer(ctx, r)
	if err != nil {
		return target{}, err
	}
	found, ok := s.Tool(r.Tool)
	if !ok {
		return target{server: s}, &notFoundError{what: "tool", server: s.Name, name: r.Tool, known: s.ToolNames(), owners: e.owners(r.Catalogue, r.Tool, s.Name)}
	}
	return target{server: s, tool: found}, nil
}

// Answers of an upstream that are no result of a tool.
var (
	errNoResult      = errors.New("the upstream's answer is no tool result")
	errInputRequired = errors.New("the tool asks for input (elicitation), which is not passed on yet")
	errTask          = errors.New("the upstream answered with a task, which was not asked for")
)

func (e run) textOptions() compress.Options { return compress.Options{TOON: e.options.TOON} }

// pages writes the results of a request that are too long.
func (e run) pages(r *Request) pages.Pages {
	return pages.Pages{
		Store: &e.store, Principal: r.principal(), Limit: e.options.ResultTokens, Texts: e.textOptions(), Filter: e.options.Filter,
	}
}
