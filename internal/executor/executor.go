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
	registry *registry.Registry
	current  atomic.Pointer[Options]
	log      *slog.Logger
	schemas  arguments.Schemas
	store    store
	builtin  *catalog.Server
	account  account
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
	return e.begin().exec(ctx, r)
}

func (e run) exec(ctx context.Context, r Request) (*Result, error) {
	if r.Server == Builtin {
		return e.execBuiltin(ctx, r)
	}
	began := time.Now()
	raw, target, err := e.call(ctx, r)
	var shaped *Result
	if err == nil {
		shaped, err = e.shape(ctx, raw, r, target)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		fault := e.fault(r, target, err)
		e.log.Debug("call failed", "server", r.Server, "tool", r.Tool, "code", fault.Code, "duration", time.Since(began))
		return fault.Result(r.Structured), nil
	}
	e.account.add(r.Server, shaped.received, shaped.sent)
	e.log.Debug("call", "server", r.Server, "tool", r.Tool, "duration", time.Since(began),
		"tokens_received", shaped.received, "tokens_sent", shaped.sent)
	return shaped, nil
}

// Raw runs one call and returns the upstream's result as it came, or a fault.
func (e *Executor) Raw(ctx context.Context, r Request) (json.RawMessage, *Result) {
	run := e.begin()
	raw, target, err := run.call(ctx, r)
	if err != nil {
		return nil, run.fault(r, target, err).Result(true)
	}
	return raw, nil
}

// target is what a request turned out to mean.
type target struct {
	server    *catalog.Server
	tool      *catalog.Tool
	arguments json.RawMessage
}

// call finds, checks and calls, in this order (design 7).
func (e run) call(ctx context.Context, r Request) (json.RawMessage, target, error) {
	began := time.Now()
	t, err := e.find(ctx, r.Server, r.Tool)
	if err != nil {
		return nil, t, err
	}
	waited := time.Since(began)
	server := e.options.Servers[r.Server]
	if t.arguments, err = e.schemas.Read(r.Arguments, t.tool.InputSchema, !server.Unchecked); err != nil {
		return nil, t, err
	}
	raw, err := e.registry.Call(ctx, r.Server, upstream.Call{
		Tool: r.Tool, Arguments: t.arguments, Meta: r.Meta,
		Repeatable: t.tool.Hints.IsIdempotent() || t.tool.Hints.IsReadOnly(),
		Wait:       max(e.options.ExecWait-waited, time.Nanosecond), // 0 is no bound
		Timeout:    server.timeout(r.Tool), Idle: server.IdleTimeout,
		OnProgress: r.OnProgress,
		Client:     r.Client,
		OnLog:      r.OnLog,
		LogLevel:   r.LogLevel,
	})
	return raw, t, err
}

// FindServer looks a server up. One whose catalogue is not known yet is waited
// for like by a call to it.
func (e *Executor) FindServer(ctx context.Context, name string) (*catalog.Server, *Fault) {
	run := e.begin()
	s, err := run.findServer(ctx, name)
	if err != nil {
		return nil, run.fault(Request{Server: name}, target{}, err)
	}
	return s, nil
}

// FindServerFor is [Executor.FindServer] for who wants one of its tools: the fault
// of an unknown server says who has the tool.
func (e *Executor) FindServerFor(ctx context.Context, name, tool string) (*catalog.Server, *Fault) {
	run := e.begin()
	s, err := run.findServer(ctx, name)
	if err != nil {
		return nil, run.fault(Request{Server: name}, target{}, run.withOwners(err, tool))
	}
	return s, nil
}

// ToolNotFound is the fault of a tool that s does not have. It says who has it.
func (e *Executor) ToolNotFound(s *catalog.Server, name string) *Fault {
	missing := &notFoundError{what: "tool", server: s.Name, name: name, known: s.ToolNames(), owners: e.owners(name, s.Name)}
	return missing.fault()
}

func (e run) findServer(ctx context.Context, name string) (*catalog.Server, error) {
	if name == Builtin {
		return e.builtin, nil
	}
	s, ok := e.registry.Snapshot().Server(name)
	if ok && !s.Known && s.State == catalog.Connecting {
		bounded, cancel := context.WithTimeout(ctx, e.options.ExecWait)
		e.registry.WaitServer(bounded, name)
		cancel()
		s, ok = e.registry.Snapshot().Server(name)
	}
	switch {
	case !ok:
		return nil, &notFoundError{what: "server", name: name, known: e.registry.Snapshot().ServerNames()}
	case !s.Known:
		return nil, &upstream.UnavailableError{
			State: s.State, Reason: s.Reason, RetryAfter: time.Duration(s.RetryAfter * float64(time.Second)),
		}
	}
	return s, nil
}

func (e run) find(ctx context.Context, server, tool string) (target, error) {
	s, err := e.findServer(ctx, server)
	if err != nil {
		return target{}, e.withOwners(err, tool)
	}
	found, ok := s.Tool(tool)
	if !ok {
		return target{server: s}, &notFoundError{what: "tool", server: server, name: tool, known: s.ToolNames(), owners: e.owners(tool, server)}
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
