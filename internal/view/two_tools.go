package view

import (
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/catalog"
	"mcpx/internal/executor"
	"mcpx/internal/plain"
	"mcpx/internal/registry"
	"mcpx/internal/upstream"
	"mcpx/internal/wire"
)

// Options are the settings of the two tools. The zero value is the design's default.
type Options struct {
	// BudgetTokens bounds the description of inspect, in o200k tokens; 0 = 2000.
	BudgetTokens int
	// BudgetChars bounds it in UTF-16 units for every client; 0 = no bound.
	BudgetChars int
	// MaxDescription cuts the descriptions of parameters; 0 = 300 runes.
	MaxDescription int
	// JSONSchema shows schemas as minified JSON instead of TypeScript.
	JSONSchema bool
	// NoTOON means that no result is TOON.
	NoTOON bool
	// Structured is the policy for structuredContent.
	Structured StructuredPolicy
	// Clients overrides the policy for clients by name, in order.
	Clients []ClientRule
	// StartupWait bounds how long tools/list waits, from NewTwoTools on, for servers
	// that mcpx has never tried; 0 = 5 s.
	StartupWait time.Duration
	// Logger may be nil (discard).
	Logger *slog.Logger
}

// TwoTools shows the whole catalogue as the tools inspect and exec. Close ends
// its goroutine.
type TwoTools struct {
	registry *registry.Registry
	executor *executor.Executor
	log      *slog.Logger
	current  atomic.Pointer[settings]
	texts    texts
	began    time.Time

	needed   chan struct{}          // closed by need
	need     func()                 // closes needed, once
	look     chan struct{}          // holds one signal: the texts may have changed
	newRules atomic.Bool            // the rules for clients have changed since the last announcement
	changed  atomic.Pointer[func()] // from OnChange, nil before

	stop     chan struct{}
	stopOnce sync.Once
	loops    sync.WaitGroup
}

var _ View = (*TwoTools)(nil)

// NewTwoTools makes a view that shows the catalogue of r and calls through e. Call it
// before r.Start.
func NewTwoTools(r *registry.Registry, e *executor.Executor, options Options) *TwoTools {
	v := &TwoTools{
		registry: r, executor: e, log: options.Logger, began: time.Now(),
		needed: make(chan struct{}), look: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	if v.log == nil {
		v.log = slog.New(slog.DiscardHandler)
	}
	v.need = sync.OnceFunc(func() { close(v.needed) })
	v.current.Store(newSettings(options))
	r.OnChange(v.lookAgain)
	v.loops.Go(v.announce) // ends with Close
	return v
}

// SetOptions replaces the options, except the logger. It announces a change if
// clients see one.
func (v *TwoTools) SetOptions(options Options) {
	before := v.current.Swap(newSettings(options))
	if !reflect.DeepEqual(before.Clients, options.Clients) {
		v.newRules.Store(true) // announce compares only the list for a client without rules
	}
	v.lookAgain()
}

// Close ends the goroutine of the view.
func (v *TwoTools) Close() {
	v.stopOnce.Do(func() { close(v.stop) })
	v.loops.Wait()
}

// Needed returns a channel that is closed with the first call that needs an upstream,
// or after the first answer to tools/list. Starting many processes before that would
// delay the first answers.
func (v *TwoTools) Needed() <-chan struct{} { return v.needed }

// catalogue is the catalogue as a client may see it.
func (v *TwoTools) catalogue(client *upstream.Client) *catalog.Snapshot {
	return v.executor.Catalogue(client)
}

// Instructions implements [View].
func (v *TwoTools) Instructions(client *upstream.Client) string {
	return v.texts.instructions(v.catalogue(client))
}

// Tools implements [View].
func (v *TwoTools) Tools(ctx context.Context, client *upstream.Client) json.RawMessage {
	v.awaitCatalogue(ctx, client)
	defer v.need()
	return v.texts.list(v.catalogue(client), v.current.Load().profile(name(client)).shown).tools
}

// Forget implements [View].
func (v *TwoTools) Forget(client *upstream.Client) { v.registry.ForgetClient(client.ID) }

// Description is the description of inspect for a client without limits of its own.
func (v *TwoTools) Description() string {
	return v.texts.list(v.catalogue(nil), v.current.Load().profile("").shown).inspect
}

// awaitCatalogue waits for servers that mcpx has never tried, at most until
// StartupWait after the start.
func (v *TwoTools) awaitCatalogue(ctx context.Context, client *upstream.Client) {
	if starting(v.catalogue(client)) {
		v.need()
	}
	ctx, cancel := context.WithDeadline(ctx, v.began.Add(v.current.Load().StartupWait))
	defer cancel()
	v.registry.WaitKnown(ctx)
}

// starting reports whether some server has yet to send its first list.
func starting(snap *catalog.Snapshot) bool {
	return slices.ContainsFunc(snap.Servers, func(s catalog.Server) bool { return !s.Known && s.State == catalog.Connecting })
}

// Call implements [View]. A panic becomes the failure of this call.
func (v *TwoTools) Call(ctx context.Context, call Call) (result *executor.Result, err error) {
	structured := v.structured(call.Client, call.Structured)
	defer func() {
		if what := recover(); what != nil {
			v.log.Error("panic in a call", "tool", call.Name, "panic", what, "stack", string(debug.Stack()))
			failure := &executor.Failure{Code: executor.CodeExecution, Message: "internal error of mcpx; its log says more. The call may have been executed"}
			result, err = failure.Result(structured), nil
		}
	}()
	switch call.Name {
	case InspectTool:
		return v.inspect(ctx, call, structured), nil
	case ExecTool:
		return v.exec(ctx, call, structured)
	}
	v.need()
	return nil, v.unknownTool(call)
}

// needs is need, and prefers a server unless the name is empty.
func (v *TwoTools) needs(server string) {
	v.registry.Prefer(server)
	v.need()
}

// unknownTool is the error for another name than inspect and exec. Models call the
// tools in the catalogue directly: for those it shows the call of exec.
func (v *TwoTools) unknownTool(call Call) error {
	text := "there is no tool " + strconv.Quote(plain.Line(call.Name, 60)) + " here, only inspect and exec"
	snap := v.catalogue(call.Client)
	for i := range snap.Servers {
		s := &snap.Servers[i]
		if _, ok := s.Tool(call.Name); ok && s.State != catalog.Disabled {
			text += `; call exec with {"server_name":` + string(wire.Encode(s.Name)) + `,"tool_name":` + string(wire.Encode(call.Name)) + `,"arguments":{…}}`
			break
		}
	}
	return &UnknownToolError{text}
}

func name(client *upstream.Client) string {
	if client == nil {
		return ""
	}
	return client.Name
}
