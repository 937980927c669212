// Package executor is one call: find the tool, check the arguments, call it
// over the session that is open, and shape the result.
package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"mcpx/internal/arguments"
	"mcpx/internal/catalog"
	"mcpx/internal/compress"
	"mcpx/internal/jq"
	"mcpx/internal/pages"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/upstream"
)

// DefaultVerbatim are the tools whose results are files: they stay as they
// are, since what is read will be edited (design 7).
var DefaultVerbatim = []string{"read_*file*", "*file_content*", "*_show"}

// ServerOptions are what the configuration says about calls to one server.
type ServerOptions struct {
	// Unchecked leaves out the validation of arguments (validate: off).
	Unchecked bool
	// Verbatim are globs of tools whose results stay as they are; nil =
	// [DefaultVerbatim].
	Verbatim []string
	// CallTimeout bounds one call, ToolTimeouts do so for single tools, the first
	// that matches counts; 0 = the upstream's.
	CallTimeout  time.Duration
	ToolTimeouts []ToolTimeout
	// IdleTimeout ends a call without progress; 0 = none.
	IdleTimeout time.Duration
}

// ToolTimeout bounds the calls of the tools whose names match.
type ToolTimeout struct {
	Glob    string
	Timeout time.Duration
}

// timeout is that of one tool; 0 = the upstream's.
func (o ServerOptions) timeout(tool string) time.Duration {
	for _, one := range o.ToolTimeouts {
		if policy.Match([]string{one.Glob}, tool) {
			return one.Timeout
		}
	}
	return o.CallTimeout
}

// Options are what an executor needs beside the registry. All may be zero.
type Options struct {
	// Servers has the options of single servers, by name.
	Servers map[string]ServerOptions
	// ExecWait bounds the wait for a server that is connecting; 0 = 20 s.
	ExecWait time.Duration
	// TOON allows tables to become TOON; without it JSON is minified only.
	TOON bool
	// ResultTokens is the longest text of a result; the rest is kept and read by
	// handle. 0 = no limit.
	ResultTokens int
	// Filter runs the filters of select.
	Filter *jq.Runner
	// TypeScript writes the interface of a tool for VALIDATION_ERROR; without
	// it the JSON Schema is shown.
	TypeScript bool
	// Logger may be nil (discard).
	Logger *slog.Logger
}

// Executor runs calls. Safe for concurrent use.
type Executor struct {
	registry   *registry.Registry
	catalogues policy.Catalogues
	current    atomic.Pointer[Options]
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
	e.current.Store(&options)
}

// run is one call, or one question about the catalogue: the executor with the
// options of when it began.
type run struct {
	*Executor
	options *Options
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
	// Client is who asks: results that are kept belong to its principal. Nil:
	// nobody in particular, and to this process.
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

	received, sent int // for the account, in tokens
}

// Exec runs one call. It always returns a result: a failure is one with IsError.
// The only error is ctx's, when nobody waits for the result any more.
func (e *Executor) Exec(ctx context.Context, r Request) (*Result, error) {
	return e.begin().exec(ctx, e.begun(r))
}

func (e run) exec(ctx context.Context, r Request) (*Result, error) {
	if r.Server == Builtin {
		return e.execBuiltin(ctx, r)
	}
	raw, target, err := e.call(ctx, &r)
	var shaped *Result
	if err == nil {
		shaped, err = e.shape(ctx, raw, r, target)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		fault := e.fault(r, target, err)
		e.log.Debug("call failed", "server", r.Server, "tool", r.Tool, "code", fault.Code, "duration", time.Since(r.began))
		return fault.Result(r.Structured), nil
	}
	e.account.add(r.Server, shaped.received, shaped.sent)
	e.log.Debug("call", "server", r.Server, "tool", r.Tool, "duration", time.Since(r.began),
		"tokens_received", shaped.received, "tokens_sent", shaped.sent)
	return shaped, nil
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
}

// call finds, checks and calls, in this order (design 7). Where a reload has put
// another server in the place of the one that was found, what the caller may do
// there is another question, and all of it begins again.
func (e run) call(ctx context.Context, r *Request) (json.RawMessage, target, error) {
	for {
		raw, t, err := e.attempt(ctx, r)
		var replaced *registry.ReplacedError
		if !errors.As(err, &replaced) {
			return raw, t, err
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
	server := e.options.Servers[r.Server]
	if t.arguments, err = e.schemas.Read(r.Arguments, t.tool.InputSchema, !server.Unchecked); err != nil {
		return nil, t, err
	}
	raw, err := e.registry.Call(ctx, t.server, upstream.Request{
		Method: "tools/call", Params: upstream.ToolParams(r.Tool, t.arguments), Meta: r.Meta,
		Repeatable: t.tool.Hints.IsIdempotent() || t.tool.Hints.IsReadOnly(),
		Wait:       e.waitLeft(r),
		Timeout:    server.timeout(r.Tool), Idle: server.IdleTimeout,
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
// says who has that.
func (e *Executor) FindServer(ctx context.Context, client *upstream.Client, seen *catalog.Snapshot, name, tool string) (*catalog.Snapshot, *catalog.Server, *Fault) {
	run, r := e.begin(), e.begun(Request{Client: client, Catalogue: seen, Server: name, Tool: tool})
	s, err := run.findServer(ctx, &r)
	if err != nil {
		return r.Catalogue, nil, run.fault(r, target{}, err)
	}
	return r.Catalogue, s, nil
}

// ToolNotFound is the fault of a tool that s does not have. It says who has it of
// those that the caller sees.
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

// verbatim reports whether the result of this call stays as it is: the tool
// hands out files, or an argument names one that is JSON itself.
func (e run) verbatim(r Request, t target) bool {
	globs := e.options.Servers[r.Server].Verbatim
	if globs == nil {
		globs = DefaultVerbatim
	}
	return policy.Match(globs, r.Tool) || namesJSONFile(t.arguments)
}

// jsonFiles are the endings of files that people edit as JSON, each with the
// quote that ends the string.
var jsonFiles = [][]byte{
	[]byte(`.json"`), []byte(`.jsonc"`), []byte(`.ipynb"`), []byte(`.geojson"`), []byte(`.lock"`),
}

// namesJSONFile reports whether any string among the arguments ends like the
// name of a JSON file.
func namesJSONFile(arguments json.RawMessage) bool {
	for _, ending := range jsonFiles {
		if bytes.Contains(arguments, ending) {
			return true
		}
	}
	return false
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
