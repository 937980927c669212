package view

import (
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"mcpx/internal/catalog"
	"mcpx/internal/executor"
	"mcpx/internal/plain"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/upstream"
	"mcpx/internal/wire"
)

// Options are the settings of the two tools. The zero value is the design's default.
type Options struct {
	// Part is the part of the catalogue that the view shows; nil = all of it. It cannot
	// be replaced.
	Part *policy.Part
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
	// Clients are rules for clients by name; of those that say something the first holds.
	Clients []ClientRule
	// NeverCut means that only a rule in Clients cuts a result to a client's limit.
	NeverCut bool
	// StartupWait bounds how long tools/list waits, from NewTwoTools on, for servers
	// that mcpx has never tried; 0 = 5 s.
	StartupWait time.Duration
	// Logger may be nil (discard).
	Logger *slog.Logger
}

// TwoTools shows its part of the catalogue as the tools inspect and exec. Close ends
// its goroutine.
type TwoTools struct {
	base
	current  atomic.Pointer[settings]
	texts    texts
	newRules atomic.Bool // the rules for clients have changed since the last announcement
}

var _ View = (*TwoTools)(nil)

// NewTwoTools makes a view of the catalogue of r that calls through e. Before r.Start
// makes the first changes known to it.
func NewTwoTools(r *registry.Registry, e *executor.Executor, options Options) *TwoTools {
	v := &TwoTools{base: newBase(r, e, options.Part, options.Logger)}
	v.current.Store(newSettings(options))
	v.follow(v.shown)
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

// shown is the list for a client without rules.
func (v *TwoTools) shown() (list func() json.RawMessage, changed bool) {
	snap, how := v.catalogue(nil), v.current.Load().profile("").shown
	return func() json.RawMessage { return v.texts.list(snap, how).tools }, v.newRules.Swap(false)
}

// Instructions implements [View].
func (v *TwoTools) Instructions(client *upstream.Client) string {
	return v.texts.instructions(v.catalogue(client))
}

// Tools implements [View].
func (v *TwoTools) Tools(ctx context.Context, client *upstream.Client) json.RawMessage {
	v.awaitCatalogue(ctx, client, v.current.Load().StartupWait)
	defer v.registry.Need()
	return v.texts.list(v.catalogue(client), v.current.Load().profile(name(client)).shown).tools
}

// Description is the description of inspect for a client without limits of its own.
func (v *TwoTools) Description() string {
	return v.texts.list(v.catalogue(nil), v.current.Load().profile("").shown).inspect
}

// Call implements [View]. A panic becomes the failure of this call.
func (v *TwoTools) Call(ctx context.Context, call Call) (result *executor.Result, err error) {
	form := v.form(call)
	defer func() {
		if what := recover(); what != nil {
			result, err = v.panicked(call.Name, what).Result(form.Always()), nil
		}
	}()
	switch call.Name {
	case InspectTool:
		return v.inspect(ctx, call, form.Always()), nil
	case ExecTool:
		return v.exec(ctx, call, form)
	}
	v.registry.Need()
	return nil, v.unknownTool(call)
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
