package view

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// AllTools shows the tools themselves under unique names, each with the definition that its server sent, without parts that
// clients could not parse (see the func native). Close ends its goroutines.
type AllTools struct {
	base
	texts texts
}

var _ View = (*AllTools)(nil)

// NewAllTools returns a view of the catalogue of r that makes calls through e.
func NewAllTools(r *registry.Registry, e *executor.Executor, options Options) *AllTools {
	v := &AllTools{}
	v.init(r, e, options)
	v.follow(func(client *caller.Client) (list func() json.RawMessage) {
		snap, naming := v.forApps(client), v.current().Naming // snap also has the tools for apps, so that any change is noticed
		return func() json.RawMessage { return v.texts.natives(snap, naming).tools }
	})
	return v
}

// natives is the list of tools for the answer to tools/list, and the tools by the names under which clients may call them. In a
// TwoTools, the list has only the tools with apps, which are listed next to inspect and exec. byName may have a few names that are
// not in the list (see the func appNames).
type natives struct {
	tools  json.RawMessage
	byName map[string]origin
	// mirrored has the tools for which HTTP headers repeat some arguments, by the names of server and tool.
	mirrored map[[2]string]*mcp.Tool
}

// headerTool returns the tool with a listed name if HTTP headers repeat some of its arguments, otherwise nil.
func (n *natives) headerTool(name string) *mcp.Tool {
	o := n.byName[name]
	return n.mirrored[[2]string{o.server, o.tool}]
}

// headerTool parses a definition from the answer to tools/list. It returns nil if no HTTP header repeats an argument, or if the
// definition describes such a header wrongly: clients ignore that tool and send no headers.
func headerTool(definition json.RawMessage) *mcp.Tool {
	if !bytes.Contains(definition, []byte(`"x-mcp-header"`)) {
		return nil
	}
	var tool mcp.Tool
	if json.Unmarshal(definition, &tool) != nil || mcp.ValidateParamHeaderAnnotations(&tool) != nil {
		return nil
	}
	return &tool
}

func newNatives(snap *catalog.Snapshot, naming Naming) *natives {
	all, byName := naming.names(snap)
	out := []byte{'['}
	mirrored := make(map[[2]string]*mcp.Tool)
	for _, o := range all {
		s, _ := snap.Server(o.server)
		t, _ := s.Tool(o.tool)
		if len(out) > 1 {
			out = append(out, ',')
		}
		definition := native(t, o.name)
		if t.App != "" && !naming.Transparent {
			definition = linkedApp(s, definition)
		}
		out = append(out, definition...)
		if tool := headerTool(definition); tool != nil {
			mirrored[[2]string{o.server, o.tool}] = tool
		}
	}
	appNames(snap, byName)
	return &natives{append(out, ']'), byName, mirrored}
}

// natives returns the list of tools that a client may see now.
func (v *AllTools) natives(client *caller.Client) *natives {
	if client.ShowsApps() {
		return v.texts.natives(v.forApps(client), v.current().Naming)
	}
	return v.texts.natives(v.catalogue(client), v.current().Naming)
}

// Greeting returns the joined instructions of all servers, and whether there are resources, prompts and other capabilities, as
// described at [View].
func (v *AllTools) Greeting(client *caller.Client) Greeting {
	return Greeting{v.instructions(client), v.resources(client).Offers(), runsTasks(v.catalogue(client))}
}

// runsTasks reports whether some tool can run as a task of the legacy era. While servers are still starting, it returns true,
// because they may have such a tool.
func runsTasks(snap *catalog.Snapshot) bool {
	return starting(snap) || slices.ContainsFunc(snap.Servers, func(s catalog.Server) bool {
		return slices.ContainsFunc(s.Tools, func(t catalog.Tool) bool { return t.RunsAsTask })
	})
}

// instructions returns the instructions of all enabled servers, joined, with the name of each as a heading. For a transparent
// view, it returns the instructions of the view's only server unchanged. Without servers, it returns the text that the catalogue
// has for this case.
func (v *AllTools) instructions(client *caller.Client) string {
	var all strings.Builder
	snap := v.catalogue(client)
	if len(snap.Servers) == 0 {
		return snap.Empty
	}
	if v.current().Naming.Transparent && len(snap.Servers) == 1 {
		return snap.Servers[0].Purpose()
	}
	for i := range snap.Servers {
		s := &snap.Servers[i]
		if s.Purpose() == "" || s.State == catalog.Disabled {
			continue
		}
		if all.Len() > 0 {
			all.WriteString("\n\n")
		}
		all.WriteString("# " + sanitize.Line(s.Name, 0) + "\n" + sanitize.Lines(s.Purpose()))
	}
	return all.String()
}

// Saved implements [View]. It returns nil, because AllTools saves no tokens: its clients get the definitions of all
// tools.
func (v *AllTools) Saved(*caller.Client) func() []request.Saving { return nil }

// Tools returns the definitions of all tools that the client may see, as described at [View].
func (v *AllTools) Tools(ctx context.Context, client *caller.Client) json.RawMessage {
	v.awaitCatalogue(ctx, client)
	defer v.registry.Need()
	return v.natives(client).tools
}

// HeaderTool returns the definition of a listed tool if HTTP headers repeat some of its arguments, as described at [View].
func (v *AllTools) HeaderTool(ctx context.Context, client *caller.Client, name string) *mcp.Tool {
	return v.listWith(ctx, client, name).headerTool(name)
}

// listWith returns the list of tools. If the list does not have the name and servers are still starting, listWith first waits
// for these servers.
func (v *AllTools) listWith(ctx context.Context, client *caller.Client, name string) *natives {
	list := v.natives(client)
	if _, ok := list.byName[name]; !ok {
		if starting(v.catalogue(client)) {
			v.awaitCatalogue(ctx, client)
		}
		list = v.natives(client) // also if no server is starting any more: the last one may have listed its tools just now
	}
	return list
}

// Call calls a listed tool, as described at [View]. Its error may be a [wire.RPCError]. A panic becomes the failure of this call.
func (v *AllTools) Call(ctx context.Context, call Call) (result *results.Result, err error) {
	defer func() {
		if what := recover(); what != nil {
			result, err = executor.Panicked(v.log, call.Event, call.Name, what).Result(false), nil
		}
	}()
	v.registry.Need()
	list := v.listWith(ctx, call.Client, call.Name)
	o, ok := list.byName[call.Name]
	if !ok && v.lookAgain(ctx, call) {
		list = v.natives(call.Client)
		o, ok = list.byName[call.Name]
	}
	if !ok {
		o, ok = v.unlisted(call)
	}
	if !ok {
		server := ""
		if snap := v.catalogue(call.Client); len(snap.Servers) == 1 {
			server = snap.Servers[0].Name
		}
		v.executor.Unknown(call.Event, server, call.Name)
		return nil, list.unknown(call.Name)
	}
	return v.callNative(ctx, call, o)
}

// lookAgain looks for a tool that the view does not know: it asks servers for their lists of tools again. If the view has only
// one server, lookAgain asks that server. Otherwise it asks each server whose prefix is at the beginning of the name of the tool.
// It reports whether it has asked any server.
func (v *AllTools) lookAgain(ctx context.Context, call Call) (found bool) {
	snap := v.catalogue(call.Client)
	for i := range snap.Servers {
		name := snap.Servers[i].Name
		if len(snap.Servers) == 1 || strings.HasPrefix(call.Name, v.current().Naming.prefixed(name, "")) {
			found = true
			v.executor.Relist(ctx, call.Client, name)
		}
	}
	return found
}

// unlisted returns the tool that a name means on a server whose tools are not known yet. The call then waits for the server while
// it connects, as exec does, or its error says why there is no connection.
func (v *AllTools) unlisted(call Call) (o origin, found bool) {
	snap, naming := v.catalogue(call.Client), v.current().Naming
	for i := range snap.Servers {
		if snap.Servers[i].Known {
			continue
		}
		server := snap.Servers[i].Name
		tool, prefixed := strings.CutPrefix(call.Name, naming.prefixed(server, ""))
		if naming.Transparent {
			tool, prefixed = call.Name, true
		}
		if prefixed {
			return origin{call.Name, server, tool}, true
		}
	}
	return origin{}, false
}

// callNative calls a server's tool for a client that has named the tool itself in tools/call, instead of exec.
func (b *base) callNative(ctx context.Context, call Call, o origin) (*results.Result, error) {
	b.needs(o.server)
	options := b.current()
	r := call.request(o.server, o.tool, call.Arguments)
	r.Scope, r.Catalogue, r.Apps = options.Scope, b.catalogue(call.Client), call.Client.ShowsApps()
	if r.Apps {
		r.Catalogue = b.forApps(call.Client)
	}
	r.Native, r.Untouched, r.Task = true, options.Untouched, call.Task
	if r.Format = b.form(call).Native(); declaresOutput(r.Catalogue, o) {
		r.Format.Structured = results.StructuredOwn
	}
	return b.executor.Exec(ctx, r)
}

// declaresOutput reports whether a tool has an output schema, or may have one because the server's tools are not known yet. For
// such a tool, SDKs refuse results without structuredContent.
func declaresOutput(snap *catalog.Snapshot, o origin) bool {
	s, ok := snap.Server(o.server)
	if !ok {
		return false
	}
	if !s.Known {
		return true
	}
	t, ok := s.Tool(o.tool)
	return ok && t.OutputSchema != nil && !bytes.Equal(t.OutputSchema, []byte("null"))
}

// unknown returns the error for a name that no tool has.
func (n *natives) unknown(name string) error {
	text := "unknown tool " + strconv.Quote(sanitize.Line(name, 100))
	return &UnknownToolError{text + sanitize.DidYouMean(name, slices.Collect(maps.Keys(n.byName)))}
}
