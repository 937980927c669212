package view

import (
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/executor"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/upstream"
)

// base is what all views have: a part of the catalogue, and announcements of its
// changes.
type base struct {
	registry *registry.Registry
	executor *executor.Executor
	current  func() *Settings // those in force
	log      *slog.Logger
	began    time.Time
	unfollow func()
	// shown returns a func that makes the present answer to tools/list for a client.
	shown func(*upstream.Client) (list func() json.RawMessage)
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

// Name implements [View].
func (b *base) Name() string { return b.current().Name }

// part is the part of the catalogue that the view shows; nil = all of it.
func (b *base) part() *policy.Part { return b.current().Part }

// follow starts the announcements, of tools by what shown returns for a client
// (toolsSince).
func (b *base) follow(shown func(*upstream.Client) (list func() json.RawMessage)) {
	b.shown = shown
	b.unfollow = b.registry.OnChange(b.lookAgain)
	tools, items, rules := b.toolsOf(nil), b.itemsOf(nil), b.current().Clients
	tellTools := func() bool {
		before := rules
		rules = b.current().Clients
		others := !reflect.DeepEqual(before, rules) // tools compares the list for a client without rules
		told := b.tell(tools(others))
		for _, w := range b.audience() {
			told = w.tell(w.tools(others)) || told
		}
		return told
	}
	tellItems := func() bool {
		told := b.tell(items())
		for _, w := range b.audience() {
			told = w.tell(w.items()) || told
		}
		return told
	}
	b.loops.Go(func() { // ends with Close, as does the other
		b.announce(b.lookAtTools, tellTools, func() bool { return starting(b.catalogue(nil)) })
	})
	b.loops.Go(func() {
		b.announce(b.lookAtItems, tellItems, func() bool { return b.beside(nil).Starting() })
	})
}

func (b *base) toolsOf(client *upstream.Client) func(others bool) []catalog.Kind {
	return toolsSince(func() func() json.RawMessage { return b.shown(client) })
}

func (b *base) itemsOf(client *upstream.Client) func() []catalog.Kind {
	return itemsSince(func(kind catalog.Kind) []*catalog.Server { return b.beside(client).Listed(kind) })
}

// Watch implements [View].
func (b *base) Watch(client *upstream.Client, changed func(catalog.Kind), unknown func(method string, params json.RawMessage)) (stop func()) {
	who := &upstream.Client{Principal: client.Principal, View: client.View}
	return b.add(&watcher{who, changed, unknown, b.toolsOf(who), b.itemsOf(who)})
}

// Close ends the goroutine of the view.
func (b *base) Close() {
	b.unfollow()
	b.stopOnce.Do(func() { close(b.stop) })
	b.loops.Wait()
}

// catalogue is the catalogue as a client of the view may see it.
func (b *base) catalogue(client *upstream.Client) *catalog.Snapshot {
	return b.part().Of(b.executor.Catalogue(client))
}

// sees reports of a server whether a client of the view may see it.
func (b *base) sees(client *upstream.Client) func(server string) bool {
	return func(server string) bool {
		_, ok := b.catalogue(client).Server(server)
		return ok
	}
}

// Own implements [View].
func (b *base) Own(client *upstream.Client) { b.registry.Own(client) }

// PassOn implements [View].
func (b *base) PassOn(client *upstream.Client, method string, params json.RawMessage) {
	b.registry.PassOn(client, method, params)
}

// Forget implements [View].
func (b *base) Forget(client *upstream.Client) { b.registry.ForgetClient(client.ID) }

// awaitCatalogue waits for servers that mcpx has never tried, at most until
// StartupWait after the start.
func (b *base) awaitCatalogue(ctx context.Context, client *upstream.Client) {
	if starting(b.catalogue(client)) {
		b.registry.Need()
	}
	ctx, cancel := context.WithDeadline(ctx, b.began.Add(b.current().StartupWait))
	defer cancel()
	b.registry.WaitKnown(ctx, b.sees(client))
	// The catalogue names mcpx if there is something to read: it would change in a moment.
	b.registry.WaitListed(ctx, b.sees(client))
}

// starting reports whether some server has yet to send its first list.
func starting(snap *catalog.Snapshot) bool {
	return slices.ContainsFunc(snap.Servers, func(s catalog.Server) bool { return !s.Known && s.State == catalog.Connecting })
}

// needs says that a call needs upstreams, and this one first unless the name is empty.
func (b *base) needs(server string) {
	b.registry.Prefer(server)
	b.registry.Need()
}

// name is the name that a client gave.
func name(client *upstream.Client) string {
	if client == nil {
		return ""
	}
	return client.Name
}
