package view

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/results"
)

// Options are the settings of a view. All may be zero.
type Options struct {
	// Name is the view's name in the config.
	Name string
	// Scope is the part of the catalogue that the view shows; nil = all of it.
	Scope *policy.Scope
	// Naming says how AllTools names tools. Untouched means that the results of its calls are not compressed.
	Naming    Naming
	Untouched bool
	// BudgetTokens bounds the description of inspect, in o200k tokens; 0 = 1200.
	BudgetTokens int
	// BudgetChars bounds it in UTF-16 units for every client; 0 = no bound.
	BudgetChars int
	// MaxDescription cuts the descriptions of parameters; 0 = 300 runes.
	MaxDescription int
	// JSONSchema shows schemas as minified JSON instead of TypeScript.
	JSONSchema bool
	// NoTOON means that no result becomes TOON.
	NoTOON bool
	// ShortNames means that the arguments of the two tools are named server, tool and args.
	ShortNames bool
	// Apps lists tools that have apps next to the two tools, for clients that show apps.
	Apps bool
	// ReadDoor adds the tool exec_read.
	ReadDoor bool
	// Structured is the policy for structuredContent.
	Structured StructuredPolicy
	// Clients are rules for clients by name; for each setting, the first rule that has it applies.
	Clients []ClientRule
	// NeverCut means that results are cut to a client's limit only by a rule in Clients.
	NeverCut bool
	// StartupWait bounds how long tools/list waits, counted from NewTwoTools, for servers that mcpx has never tried; 0 = 5 s.
	StartupWait time.Duration
	// Current, if not nil, returns the settings in force, which replace these options. Clients are notified of a change with
	// the registry's next snapshot.
	Current func() *Settings
	// Logger may be nil (discard).
	Logger *slog.Logger
}

// TwoTools shows its part of the catalogue as the tools inspect and exec. Close ends its goroutines.
type TwoTools struct {
	base
	texts texts
	// searching is held during a search, so that long queries use one core and leave the others to calls.
	searching sync.Mutex
}

var _ View = (*TwoTools)(nil)

// NewTwoTools makes a view of the catalogue of r that calls through e. It must be made before r.Start to see the first changes.
func NewTwoTools(r *registry.Registry, e *executor.Executor, options Options) *TwoTools {
	v := &TwoTools{}
	v.init(r, e, options)
	v.follow(v.listed)
	return v
}

// listed makes the tools/list of a client, as if no rule applied to its name.
func (v *TwoTools) listed(client *caller.Client) (list func() json.RawMessage) {
	snap, how := v.named(client), v.current().profile("").shown
	apps := v.forApps(client)
	return func() json.RawMessage {
		tools := v.texts.list(snap, how).tools
		if !v.Traits().Apps {
			return tools
		}
		return joined(tools, v.appsOf(apps).tools)
	}
}

// Instructions returns the instructions for a client's model.
func (v *TwoTools) Instructions(client *caller.Client) string {
	return v.texts.instructions(v.named(client), v.current().profile(name(client)).shown)
}

// Greeting implements [View].
func (v *TwoTools) Greeting(client *caller.Client) Greeting {
	return Greeting{Instructions: v.Instructions(client), Offers: v.resources(client).Offers()}
}

// Tools implements [View].
func (v *TwoTools) Tools(ctx context.Context, client *caller.Client) json.RawMessage {
	v.awaitCatalogue(ctx, client)
	defer v.registry.Need()
	tools := v.texts.list(v.named(client), v.current().profile(name(client)).shown).tools
	if apps := v.apps(client); apps != nil {
		tools = joined(tools, apps.tools)
	}
	return tools
}

// Description returns the description of inspect for a client without limits of its own.
func (v *TwoTools) Description() string {
	return v.texts.list(v.named(nil), v.current().profile("").shown).inspect
}

// named adds the built-in server to the catalogue if that has something to read. The result is the same for the same catalogue.
func (v *TwoTools) named(client *caller.Client) *catalog.Snapshot {
	snap := v.catalogue(client)
	reader := v.executor.Reader(snap)
	if reader == nil {
		return snap
	}
	return snap.Derived(v, func() *catalog.Snapshot { return catalog.NewSnapshot(append(slices.Clone(snap.Servers), *reader)) })
}

// HeaderTool implements [View]. The arguments of exec are in no headers; a tool with an app may have some.
func (v *TwoTools) HeaderTool(_ context.Context, client *caller.Client, name string) *mcp.Tool {
	if apps := v.apps(client); apps != nil {
		return apps.headerTool(name)
	}
	return nil
}

// Call implements [View]. A panic becomes the failure of this call.
func (v *TwoTools) Call(ctx context.Context, call Call) (result *results.Result, err error) {
	form := v.form(call)
	defer func() {
		if what := recover(); what != nil {
			result, err = executor.Panicked(v.log, call.Event, call.Name, what).Result(form.Always()), nil
		}
	}()
	switch call.Name {
	case InspectTool:
		return v.inspect(ctx, call, form.Always()), nil
	case ExecTool:
		return v.exec(ctx, call, form)
	case ReadTool:
		if v.current().ReadDoor {
			return v.exec(ctx, call, form)
		}
	}
	if apps := v.apps(call.Client); apps != nil {
		if o, ok := apps.byName[call.Name]; ok {
			return v.callNative(ctx, call, o)
		}
	}
	v.registry.Need()
	v.executor.Unknown(call.Event, "", call.Name)
	return nil, v.unknownTool(call)
}

// unknownTool is the error for a name other than inspect and exec. Models sometimes call a tool of the catalogue directly: then the
// error shows the call of exec.
func (v *TwoTools) unknownTool(call Call) error {
	text := "there is no tool " + strconv.Quote(sanitize.Line(call.Name, 60)) + " here, only inspect and exec"
	snap := v.catalogue(call.Client)
	for i := range snap.Servers {
		s := &snap.Servers[i]
		if _, ok := s.Tool(call.Name); ok && s.State != catalog.Disabled {
			names := v.execArguments()
			text += `; call exec with {"` + names[0] + `":` + string(wire.Encode(s.Name)) + `,"` + names[1] + `":` + string(wire.Encode(call.Name)) + `,"` + names[2] + `":{…}}`
			break
		}
	}
	return &UnknownToolError{text}
}
