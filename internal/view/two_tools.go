package view

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/results"
)

// Options are the settings of a view. Each of them may be zero.
type Options struct {
	// Name is the view's name in the config.
	Name string
	// Scope is the part of the catalogue that the view shows; nil means the whole catalogue.
	Scope *policy.Scope
	// Naming says how prompts and the servers' own tools are named. Untouched means that results of calls of these tools are
	// not compressed.
	Naming    Naming
	Untouched bool
	// BudgetTokens is the maximum length of inspect's description together with the part of the catalogue in exec's description,
	// in o200k tokens; 0 means 1200.
	BudgetTokens int
	// BudgetChars is the maximum length of inspect's description, and of exec's, in UTF-16 units; 0 means no limit. A rule for a
	// client can only lower it.
	BudgetChars int
	// MaxDescription is the maximum length of a parameter's description, in characters, in answers with several tools; longer
	// ones are cut. 0 means 300.
	MaxDescription int
	// JSONSchema shows schemas as minified JSON Schema instead of TypeScript.
	JSONSchema bool
	// Forms are the formats that results may have; 0 means the formats in the executor's options.
	Forms conf.ResultForms
	// ShortNames means that the arguments of the two tools are named server, tool and args.
	ShortNames bool
	// Apps lists the tools that have a user interface (MCP Apps) next to inspect and exec, for clients that show such
	// interfaces. These clients must see the tool itself to find its interface.
	Apps bool
	// ReadDoor adds the tool exec_read.
	ReadDoor bool
	// Structured is the policy for structuredContent.
	Structured StructuredPolicy
	// Clients are rules for clients by name. Each setting is taken from the first matching rule that has it.
	Clients []ClientRule
	// NeverCut means that results are cut to a client's limit only if a rule in Clients sets that limit.
	NeverCut bool
	// StartupWait is how long, counted from the creation of the view, tools/list waits for servers to which mcpx has never tried to
	// connect; 0 means 5 s. It also bounds two waits that are counted from their own beginning: a search of inspect waits for such
	// servers, and tools/list waits for servers that have a session for each client.
	StartupWait time.Duration
	// Current, if not nil, returns the current settings, which replace these options. Clients are notified of a change when the
	// registry makes its next snapshot.
	Current func() *Settings
	// Logger may be nil, then nothing is logged.
	Logger *slog.Logger
}

// TwoTools shows its part of the catalogue as the tools inspect and exec. Close ends its goroutines.
type TwoTools struct {
	base
	texts texts
	// searching lets only one search run at a time, so that long queries use only one CPU core and leave the others to calls.
	searching semaphore.Semaphore
}

var _ View = (*TwoTools)(nil)

// NewTwoTools returns a view of the catalogue of r that makes calls through e. To see the first changes, it must be created
// before r.Start.
func NewTwoTools(r *registry.Registry, e *executor.Executor, options Options) *TwoTools {
	v := &TwoTools{}
	v.searching.Set(1, semaphore.Queue{Calls: 256, Wait: 30 * time.Second})
	v.init(r, e, options)
	v.follow(v.listed)
	return v
}

// listed returns a func that makes the answer to tools/list for a client, without the rules for the client's name. So the
// answer is for noticing changes, not for the client.
func (v *TwoTools) listed(client *caller.Client) (list func() json.RawMessage) {
	snap, how := v.named(client), v.how(client, "")
	apps := v.forApps(client)
	return func() json.RawMessage {
		tools := v.texts.list(snap, how).tools
		if !v.Traits().Apps {
			return tools
		}
		return joined(tools, v.appsOf(apps).tools)
	}
}

// how returns the settings for the texts that a client gets. name is the client's name; if it is empty, only rules for all
// names, such as *, apply.
func (v *TwoTools) how(client *caller.Client, name string) shown {
	how := v.current().profile(name).shown
	if v.executor != nil {
		how.features.NoPrograms, how.saves = !v.executor.Programs(client, v.scope()), v.executor.Saves(client, v.scope())
	}
	return how
}

// Instructions returns what a client tells its model at the beginning about mcpx and its servers.
func (v *TwoTools) Instructions(client *caller.Client) string {
	return v.texts.instructions(v.named(client), v.how(client, name(client)))
}

// Greeting returns the instructions of mcpx, and whether there are resources, prompts and other capabilities, as described at
// [View].
func (v *TwoTools) Greeting(client *caller.Client) Greeting {
	return Greeting{Instructions: v.Instructions(client), Offers: v.resources(client).Offers()}
}

// Tools returns the definitions of inspect and exec, and of the tools listed next to them, as described at [View].
func (v *TwoTools) Tools(ctx context.Context, client *caller.Client) json.RawMessage {
	v.awaitCatalogue(ctx, client)
	defer v.registry.Need()
	tools := v.texts.list(v.named(client), v.how(client, name(client))).tools
	if apps := v.apps(client); apps != nil {
		tools = joined(tools, apps.tools)
	}
	return tools
}

// Description returns the description of inspect for a client without a name.
func (v *TwoTools) Description() string {
	return v.texts.list(v.named(nil), v.how(nil, "")).inspect
}

// named returns the catalogue that a client may see, with a part of the built-in server added: its tools for resources, prompts
// and skills, and the stored programs. If there are none of these, nothing is added. For the same catalogue it returns the same
// snapshot.
func (v *TwoTools) named(client *caller.Client) *catalog.Snapshot {
	snap := v.catalogue(client)
	reader := v.executor.Reader(client, v.scope(), snap)
	if reader == nil {
		return snap
	}
	return snap.Derived(namedKey{v, v.executor.Stored()}, func() *catalog.Snapshot {
		return catalog.NewSnapshot(append(slices.Clone(snap.Servers), *reader))
	})
}

// namedKey is the key under which the result of named is cached. The field stored changes when the stored programs change.
type namedKey struct {
	view   *TwoTools
	stored any
}

// HeaderTool implements [View]. HTTP headers never repeat the arguments of inspect and exec, but may repeat the
// arguments of a tool with an app.
func (v *TwoTools) HeaderTool(_ context.Context, client *caller.Client, name string) *mcp.Tool {
	if apps := v.apps(client); apps != nil {
		return apps.headerTool(name)
	}
	return nil
}

// Call runs inspect, exec, exec_read or a tool that belongs to an app, as described at [View]. A panic becomes the failure of
// this call.
func (v *TwoTools) Call(ctx context.Context, call Call) (result *results.Result, err error) {
	form := v.form(call)
	defer func() {
		if what := recover(); what != nil {
			result, err = executor.Panicked(v.log, call.Event, call.Name, what).Result(form.Always()), nil
		}
	}()
	switch call.Name {
	case InspectTool:
		result = v.inspect(ctx, call, form.Always())
		v.lookedUp(call, result)
		return result, nil
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

// unknownTool returns the error for a name other than inspect and exec. Models sometimes call a tool of the catalogue directly;
// then the error shows how to call it with exec.
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
