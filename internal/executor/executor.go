// Package executor runs tool calls: it finds the tool, checks the arguments, makes the call and shapes the result.
package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"mcpx/internal/arguments"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/caller"
	"mcpx/internal/jq"
	"mcpx/internal/learned"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/resources"
	"mcpx/internal/results"
)

// Executor runs tool calls. Safe for concurrent use.
type Executor struct {
	registry   *registry.Registry
	catalogues policy.Catalogues
	apps       policy.Catalogues // like the field catalogues, but with the tools that are only for apps
	current    func() *Settings  // returns the current settings
	log        *slog.Logger
	schemas    arguments.Schemas
	store      results.Store
	work       *semaphore.Semaphore // limits the long work that runs at the same time: greps, and making answers from large results
	guessing   semaphore.Semaphore  // permits one search for the words of a wrong tool name at a time, because it takes up to 0.1 s
	builtin    *builtin.Server
	learned    *learned.Store // nil if nothing is learned
	journal    *request.Journal
	tracing    *request.Tracing
	tags       *caller.Tags // sign the ids of tasks
	replica    string       // the id of this process, which the ids of tasks contain
	held       holds
	calls      sync.WaitGroup // the calls of executeFor, which may continue after their clients got an answer
	life       context.Context
	end        context.CancelCauseFunc // ends life, and with it the calls of executeFor
}

// New makes an executor for the servers of r. The caller must give r the list of [Executor.Chain] before the first call.
func New(r *registry.Registry, options Options) *Executor {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Executor{
		registry: r, log: options.Logger, journal: options.Journal, tracing: options.Tracing, learned: options.Learned,
		apps: policy.Catalogues{Apps: true}, store: results.NewStore(options.Results), replica: options.Replica, tags: caller.NewTags(options.Secrets, "mcpx ids of tasks 1"),
	}
	e.life, e.end = context.WithCancelCause(context.Background())
	e.work = semaphore.Shared(runtime.GOMAXPROCS(0), semaphore.Queue{Calls: 256, Wait: 30 * time.Second})
	e.guessing.Set(1, semaphore.Queue{Calls: 64, Wait: time.Second})
	e.builtin = builtin.New()
	e.builtin.Journal, e.builtin.NoServer = e.journal, func(name string, seen *catalog.Snapshot) error {
		return &notFoundError{name: name, known: seen.ServerNames(), empty: seen.Empty}
	}
	e.builtin.Resources = func(q *request.Request) *resources.Servers {
		return e.Resources(q.Client, func() *policy.Scope { return q.Scope })
	}
	e.builtin.Programs = func() *builtin.Programs { return e.current().Programs }
	e.builtin.Shown = func() (resources, prompts bool) { return !e.current().NoResources, !e.current().NoPrompts }
	if options.Current != nil {
		e.current = options.Current
	} else {
		settings := NewSettings(options, nil)
		e.current = func() *Settings { return settings }
	}
	return e
}

// run is the executor during one call. It keeps the settings with which the call began, even if a reload changes them. Only a
// call that starts again takes the new ones (see [run.call]).
type run struct {
	*Executor
	options *Settings
}

func (e *Executor) begin() run { return run{e, e.current()} }

// Close ends the calls of executeFor and waits for them. Some of them are still running although their clients already have an
// answer. The registry must be closed first: it ends the calls that wait for a server, and tells them why. Then two kinds of calls
// are left: calls whose results wait to be processed (see the field work), and calls that have not yet heard from the registry.
// Close cancels both, because nobody can ask for their results any more.
func (e *Executor) Close() {
	e.end(errClosed)
	e.calls.Wait()
}

var errClosed = errors.New("mcpx ends")

// Exec runs one request. A failure is returned as a result with IsError. Exec returns an error in only two cases. First: ctx has
// ended. Second: the server has answered with a [wire.RPCError], and either Request.Native is set, or this error asks the client to
// open a URL and no other call of the request has succeeded.
func (e *Executor) Exec(ctx context.Context, r Request) (*results.Result, error) {
	work := (*Executor).single
	if r.Each != nil || r.EachFrom != nil {
		work = (*Executor).several
	}
	if r.Format.Wait > 0 && (r.Server != builtin.Name || e.builtin.Runs(r.Tool)) {
		return e.executeFor(ctx, r, work)
	}
	return work(e, ctx, r)
}

// single runs a request that consists of one call. A panic becomes a failure of the call.
func (e *Executor) single(ctx context.Context, r Request) (result *results.Result, err error) {
	r, own := e.started(r)
	defer func() {
		if what := recover(); what != nil {
			result, err = Panicked(e.log, r.Event, r.Tool, what).Result(r.Format.Always()), nil
		}
		if own {
			e.journal.End(r.Event)
		}
	}()
	run := e.begin()
	raw, t, err := run.call(ctx, &r)
	return run.finish(ctx, &r, t, raw, err)
}

// Unknown records, in the event of a call, that the caller sees no tool with this name. server is empty if the server is not
// known.
func (e *Executor) Unknown(event *request.Event, server, tool string) {
	if event != nil {
		e.journal.Attempt(event)
		event.Server, event.Tool, event.KnownServer, event.Outcome = server, tool, server != "", results.CodeToolNotFound
	}
}

// finish makes the answer from the result of a call or its failure, and completes the event of the call.
func (e run) finish(ctx context.Context, r *Request, t target, raw json.RawMessage, err error) (result *results.Result, _ error) {
	event := r.Event
	if err == nil {
		result, err = e.shape(ctx, r, t, raw)
	}
	if event.Duration == 0 {
		event.Stop()
	}
	if ctx.Err() != nil {
		event.Outcome = request.OutcomeCancelled
		return nil, ctx.Err()
	}
	switch {
	case err != nil:
		result = e.failure(r, t, err).Result(r.Format.Always())
		event.Outcome = result.Code
	case result.Whole == nil:
		result.Annotate(r.Tool, r.misplaced(t.notes))
	}
	if err == nil {
		event.Answered = r.Server != builtin.Name || len(event.Costs) > 0
		event.Outcome = cmp.Or(result.Code, event.Outcome, request.OutcomeResult)
		if result.IsError && event.Outcome == request.OutcomeResult {
			event.Outcome = request.OutcomeToolError
		}
	}
	event.Received, event.Sent, event.SentBytes = result.Received, result.Sent, result.Size()
	event.Cut, event.LeftOut = result.Cut, result.LeftOut
	e.tell(event, r, result)
	if len(event.Costs) > 0 { // then the tool was a program, and the events of its calls already count what the servers sent
		event.Received, event.LeftOut = 0, event.LeftOut-event.Received
	}
	rpc, isRPC := errors.AsType[*wire.RPCError](err)
	if isRPC && (r.Native || r.part == 0 && r.Client.OpensURLsOf(rpc)) { // several handles the errors of its calls
		return nil, rpc
	}
	return result, nil
}

// largeResult is a size in bytes. It takes milliseconds to make the answer from a result of this size or more.
const largeResult = 256 << 10

// shape makes the answer from a result. For a large result it first waits until e.work permits that, unless the content is not
// changed (Untouched). If too many calls wait, the result is dropped. If there is a filter or a grep, shape itself does not wait,
// because package results waits in that case.
func (e run) shape(ctx context.Context, r *Request, t target, raw json.RawMessage) (*results.Result, error) {
	a := e.answer(r, t)
	if len(raw) >= largeResult && a.Select == "" && a.Grep == "" && !a.Untouched {
		owner := r.Client.On().Key()
		if place := e.work.Join(owner); place != nil {
			if err := e.work.Await(ctx, place, nil); err != nil {
				return dropped(a.Format.Always()), ctx.Err()
			}
		}
		defer e.work.Leave(owner)
	}
	return a.Of(ctx, raw)
}

// Raw runs one call and returns the server's result unchanged, or a failure. It does not count tokens.
func (e *Executor) Raw(ctx context.Context, r Request) (json.RawMessage, *results.Result) {
	r, own := e.started(r)
	run := e.begin()
	raw, target, err := run.call(ctx, &r)
	var failure *results.Result
	switch {
	case err != nil:
		raw, failure = nil, run.failure(&r, target, err).Result(true)
		r.Event.Outcome = failure.Code
	case isError(raw):
		r.Event.Outcome = request.OutcomeToolError
	}
	if ctx.Err() != nil {
		r.Event.Outcome = request.OutcomeCancelled
	}
	if own {
		e.journal.End(r.Event)
	}
	return raw, failure
}

// Catalogue returns the catalogue that a client may see now. It lacks the tools that are only for apps.
func (e *Executor) Catalogue(client *caller.Client) *catalog.Snapshot {
	return e.granted(client, &e.catalogues)
}

// granted returns what a client may see. The cache is e.catalogues, or e.apps to include the tools that are only for apps.
func (e *Executor) granted(client *caller.Client, cache *policy.Catalogues) *catalog.Snapshot {
	snap := e.registry.SnapshotOf(client)
	return permissionsOf(snap, client).Of(cache.Of(snap))
}

// permissionsOf returns the permissions that the rules in a snapshot give a client; nil means that the client may do everything.
func permissionsOf(snap *catalog.Snapshot, client *caller.Client) *policy.Permissions {
	if client == nil {
		return nil
	}
	return policy.RightsOf(snap).Of(client.Principal, client.View)
}

// Apps returns the catalogue for the apps (MCP Apps) that a client shows to its user. It includes the tools that are only for
// apps.
func (e *Executor) Apps(client *caller.Client) *catalog.Snapshot {
	return e.granted(client, &e.apps)
}

// visible returns the catalogue that the caller of a request may see now.
func (e *Executor) visible(r *Request) *catalog.Snapshot {
	return e.visibleIn(r.Client, r.Scope, r.Apps)
}

func (e *Executor) visibleIn(client *caller.Client, part *policy.Scope, apps bool) *catalog.Snapshot {
	if apps {
		return part.Of(e.Apps(client))
	}
	return part.Of(e.Catalogue(client))
}

// Sees returns the catalogue that the sender of a message may see now. The middleware chain calls it ([request.Sees]).
func (e *Executor) Sees(q *request.Request) *catalog.Snapshot {
	return e.visibleIn(q.Client, q.Scope, q.Apps)
}

// target is the tool that a request calls, with the checked arguments. If a check fails, only the fields found before are set.
type target struct {
	server    *catalog.Server
	tool      *catalog.Tool
	arguments json.RawMessage
	notes     arguments.Notes // what was changed in the arguments to make them valid, and which of them are not in the schema
	settings  toolSettings
}

// call finds the tool, checks the arguments, the filter and the grep, and makes the call, in this order. If meanwhile the
// server was replaced or the tool changed ([request.ReplacedError]), call starts again, because the caller's rights may have
// changed.
func (e run) call(ctx context.Context, r *Request) (json.RawMessage, target, error) {
	for {
		raw, t, err := e.attempt(ctx, r)
		if err == nil {
			return raw, t, nil
		}
		var replaced *request.ReplacedError
		if !errors.As(err, &replaced) || ctx.Err() != nil {
			return nil, t, err
		}
		e.options = e.current()
		e.awaitServer(ctx, r)
	}
}

// prepare finds the tool of a request, checks the arguments, the filter and the grep, and makes the message for the server. It
// does not check the caller's rights to send the message; the middleware chain does.
func (e run) prepare(ctx context.Context, r *Request) (*request.Request, target, error) {
	t, err := e.find(ctx, r)
	if err != nil {
		return nil, t, err
	}
	t.settings = e.options.tool(r.Server, t.tool.OwnName())
	if err = e.replaceReferences(ctx, r, t.tool.InputSchema); err != nil {
		return nil, t, err
	}
	sent := r.Arguments
	if r.Beside.Arguments != nil {
		if sent, err = e.schemas.With(sent, r.Beside.Arguments, t.tool.InputSchema, r.Beside.Violation); err != nil {
			return nil, target{server: t.server}, err
		}
	}
	if t.arguments, t.notes, err = e.schemas.Read(sent, t.tool.InputSchema, !t.settings.unchecked); err != nil {
		return nil, t, err
	}
	reads := t.server.Name == builtin.Name && builtin.Reads(t.tool.Name) // such a tool applies select and grep itself
	if r.Select != "" && !reads {
		// The filter is checked before the call, because the call may have effects, and an invalid filter would make its result
		// useless.
		if err := jq.Check(r.Select); err != nil {
			return nil, t, err
		}
	}
	if r.Grep != "" && !reads {
		if err := results.CheckGrep(r.Grep); err != nil {
			return nil, target{server: t.server}, err
		}
	}
	q := &request.Request{
		From: r.From, To: t.server, Tool: t.tool, Method: "tools/call",
		Params:     request.ToolParams(t.tool.OwnName(), policy.Arguments(t.tool, t.arguments)),
		Repeatable: t.tool.Hints.IsIdempotent() || t.tool.Hints.IsReadOnly(),
		Times:      request.Times{Wait: e.waitLeft(r), Starting: e.starting(r), Timeout: t.settings.timeout, Idle: t.settings.idle},
		Relay:      r.Client.Modern() && r.part == 0,
		Scope:      r.Scope, Apps: r.Apps, ReadOnly: r.ReadOnly, Consent: r.Consent,
	}
	if t.server.Name == builtin.Name {
		q.Serve, q.Charge, q.Program = e.builtin.Serve(e.taking(r)), e.builtin.ChargeOf(t.tool.Name), e.builtin.Runs(t.tool.Name)
	}
	return q, t, nil
}

// attempt tries to make a call once. After a [request.ReplacedError] the caller must try again. If the server answers that it
// does not know the tool, attempt reads the server's tools again; if the tool is gone, the error is a notFoundError.
func (e run) attempt(ctx context.Context, r *Request) (raw json.RawMessage, t target, err error) {
	q, t, err := e.prepare(ctx, r)
	if err != nil {
		return nil, t, err
	}
	switch {
	case t.tool.RunsAsTask && r.Task != nil:
		asTask(q, r.Task)
		raw, err = e.registry.Send(ctx, q)
	case t.tool.TaskOnly:
		raw, err = e.runTask(ctx, q)
	default:
		raw, err = e.registry.Send(ctx, q)
	}
	r.Consent = q.Consent // so that the user need not confirm again if the call starts again
	if unknownThere(raw, err, t.tool.OwnName()) {
		if s, _, missing := e.lookAgain(ctx, r); missing != nil {
			return nil, target{server: s}, missing
		}
	}
	return raw, t, err
}

// waitLeft returns how long a request may still wait for a server. The time that the user took to confirm the call does not
// count.
func (e run) waitLeft(r *Request) time.Duration {
	return max(e.options.ExecWait+r.Event.Confirming-time.Since(r.began), time.Nanosecond) // not 0, which would mean no limit
}

// starting returns a func that sends the client progress while the command of the server installs or starts. The argument of that
// func says what the command does. It returns nil if calls do not wait for that (the config has exec_wait).
func (e run) starting(r *Request) func(does string) {
	if e.options.ExecWaitSet || e.options.ExecWait <= time.Nanosecond {
		return nil
	}
	return func(does string) {
		if r.Sink.Progress != nil && r.part == 0 { // several calls of one request would report conflicting progress
			// After n seconds the progress is n/1000, so that it stays below the progress that the tool itself may report
			// afterwards.
			r.Sink.Progress(fmt.Appendf(nil, `{"progress":%g,"message":%s}`, time.Since(r.began).Seconds()/1000, wire.Encode(r.Server+" "+does)))
		}
	}
}

// answer returns what is needed to make the answer to a request from the result of the call.
func (e run) answer(r *Request, t target) results.Answer {
	server := t.server // so that the funcs below keep only the server in memory, not all of t
	a := results.Answer{
		Pages: e.pages(r), Format: r.Format, Select: r.Select, Grep: r.Grep, Untouched: r.Untouched,
		Learn: e.learns(r, t),
		Links: func(ctx context.Context, blocks []wire.Block) { e.nameLinks(ctx, blocks, r, server) },
	}
	a.Verbatim = t.settings.verbatim || namesEditedFile(t.arguments)
	if r.Select != "" {
		a.Type = typeOf(t.tool)
	}
	if r.Server == builtin.Name {
		a.Verbatim = e.builtin.Verbatim(t.tool.Name)
		if builtin.Reads(t.tool.Name) { // results of such tools are already in their final form
			a.Untouched, a.Select, a.Grep = true, "", ""
		}
	}
	runs, creates := r.Client.RunsTasks() && r.part == 0, r.Task != nil && t.tool.RunsAsTask
	if !runs && !creates {
		return a
	}
	task := func(raw json.RawMessage) json.RawMessage {
		return resources.Task(server, e.replica, e.tagOf(r.Client), raw)
	}
	if runs {
		a.Task = task
	}
	if creates {
		a.Created = task
	}
	return a
}
