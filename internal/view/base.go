package view

import (
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
)

// base is the common part of all views: the part of the catalogue that they show, and the announcements of its changes.
type base struct {
	registry *registry.Registry
	executor *executor.Executor
	current  func() *Settings // returns the current settings
	log      *slog.Logger
	began    time.Time
	unfollow []func()
	// toolsFor returns a func that makes the present answer to tools/list for a client.
	toolsFor func(*caller.Client) (list func() json.RawMessage)
	// late has the servers that did not answer while a query waited for them, so that the next query does not wait again. It
	// maps a server's name to the server's generation at that time. If the server's definition changes, its generation changes
	// too, and queries wait for it again.
	late sync.Map
	announcements
}

func (b *base) init(r *registry.Registry, e *executor.Executor, options Options) {
	b.registry, b.executor, b.log, b.began = r, e, options.Logger, time.Now()
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	b.lookAtTools, b.lookAtItems, b.stop = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
	if b.current = options.Current; b.current == nil {
		settings := NewSettings(options)
		b.current = func() *Settings { return settings }
	}
}

// Traits returns the name of the view, and which kinds of things it shows now.
func (b *base) Traits() Traits {
	settings := b.current()
	shown := b.executor.Kinds()
	return Traits{
		Name: settings.Name, Transparent: settings.Naming.Transparent, Apps: settings.Apps && shown.Resources,
		Resources: shown.Resources, Prompts: shown.Prompts,
	}
}

// Shows reports whether clients can see items of a kind at all.
func (t Traits) Shows(kind catalog.Kind) bool {
	if kind == catalog.Prompts {
		return t.Prompts
	}
	return t.Resources
}

// scope returns the part of the catalogue that the view shows; nil means the whole catalogue.
func (b *base) scope() *policy.Scope { return b.current().Scope }

// follow starts the announcements. answer returns, for a client, a func that makes the present answer to tools/list.
func (b *base) follow(answer func(*caller.Client) (list func() json.RawMessage)) {
	b.toolsFor = answer
	b.unfollow = []func(){b.registry.OnChange(b.lookAgain), b.registry.OnUnknown(b.passUnknown)}
	rules := b.current().Clients
	tellTools := func() (told bool) {
		before := rules
		rules = b.current().Clients
		others := !reflect.DeepEqual(before, rules) // watchers do not notice new rules: they compare lists made without rules
		for _, w := range b.audience() {
			told = w.tell(w.tools(others)) || told
		}
		return told
	}
	tellItems := func() (told bool) {
		for _, w := range b.audience() {
			told = w.tell(w.items()) || told
		}
		return told
	}
	b.loops.Go(func() { // both goroutines end with Close
		b.announce(b.lookAtTools, tellTools, func() bool { return starting(b.catalogue(nil)) })
	})
	b.loops.Go(func() {
		b.announce(b.lookAtItems, tellItems, func() bool { return b.resources(nil).Starting() })
	})
}

// Attach connects a client to the view, as described at [View].
func (b *base) Attach(client *caller.Client, as Attachment) (detach func()) {
	if as.Sole {
		b.registry.Own(client)
	}
	if as.Changed == nil {
		return func() { b.registry.ForgetClient(client.ID) }
	}
	var who *caller.Client // the client, reduced to what determines which tools and items it sees
	if client.Principal != nil {
		who = client.Viewer()
	}
	return b.add(&watcher{
		client: who, as: as,
		tools: toolsSince(func() func() json.RawMessage { return b.toolsFor(who) }),
		items: itemsSince(func(kind catalog.Kind) []*catalog.Server { return b.resources(who).Listed(kind) }),
	})
}

// passUnknown passes on a server's notification whose method mcpx does not know. Only a transparent view passes it on, to the
// clients that may use the whole server.
func (b *base) passUnknown(server, method string, params json.RawMessage) {
	if !b.current().Naming.Transparent || !b.scope().Has(server) {
		return
	}
	for _, w := range b.audience() {
		if s, ok := b.catalogue(w.client).Server(server); ok && !s.Limited && w.as.Unknown != nil {
			w.as.Unknown(method, params)
		}
	}
}

// Close ends the goroutines of the view.
func (b *base) Close() {
	for _, stop := range b.unfollow {
		stop()
	}
	b.stopOnce.Do(func() { close(b.stop) })
	b.loops.Wait()
}

// catalogue returns the catalogue that a client of the view may see.
func (b *base) catalogue(client *caller.Client) *catalog.Snapshot {
	return b.scope().Of(b.executor.Catalogue(client))
}

// sees returns a func that reports whether a client of the view may see a server.
func (b *base) sees(client *caller.Client) func(server string) bool {
	return func(server string) bool {
		_, ok := b.catalogue(client).Server(server)
		return ok
	}
}

// awaitCatalogue waits for servers to which mcpx has never tried to connect, but not longer than StartupWait after the creation
// of the view. Then it waits, for at most StartupWait, until mcpx knows what PerClient servers list to a client with the same
// capabilities.
func (b *base) awaitCatalogue(parent context.Context, client *caller.Client) {
	if starting(b.catalogue(client)) {
		b.registry.Need()
	}
	patience := b.current().StartupWait
	ctx, cancel := context.WithDeadline(parent, b.began.Add(patience))
	defer cancel()
	b.registry.WaitKnown(ctx, b.sees(client))
	// If servers have resources or prompts, the catalogue also gets the built-in server. Without WaitListed, the built-in server
	// could be added shortly after the client got its list of tools, and the list would change.
	b.registry.WaitListed(ctx, b.sees(client))
	ctx, stop := context.WithTimeout(parent, patience)
	defer stop()
	b.registry.WaitOwn(ctx, client, b.sees(client))
}

// awaitTools waits for the first lists of servers to which mcpx connects for the first time, for at most StartupWait. It
// reports whether it has waited. If a server did not answer in this time, later calls do not wait for it (see the field late).
func (b *base) awaitTools(ctx context.Context, client *caller.Client) bool {
	awaited := map[string]uint64{}
	snap := b.catalogue(client)
	for i := range snap.Servers {
		s := &snap.Servers[i]
		if late, ok := b.late.Load(s.Name); !s.Known && !s.Tried && s.State == catalog.Connecting && (!ok || late != s.Generation) {
			awaited[s.Name] = s.Generation
		}
	}
	if len(awaited) == 0 {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, b.current().StartupWait)
	defer cancel()
	b.registry.WaitKnown(bounded, func(server string) bool { _, ok := awaited[server]; return ok })
	b.registry.Refresh()
	if bounded.Err() != nil && ctx.Err() == nil {
		for name, generation := range awaited {
			b.late.Store(name, generation)
		}
	}
	return true
}

// starting reports whether mcpx still waits for the first list of some server.
func starting(snap *catalog.Snapshot) bool {
	return slices.ContainsFunc(snap.Servers, func(s catalog.Server) bool { return !s.Known && s.State == catalog.Connecting })
}

// needs starts the servers, because a call needs one. The server with this name starts first; the name may be empty.
func (b *base) needs(server string) {
	b.registry.Prefer(server)
	b.registry.Need()
}

// name returns the name of the client program; "" without a client.
func name(client *caller.Client) string {
	if client == nil {
		return ""
	}
	return client.Name
}
