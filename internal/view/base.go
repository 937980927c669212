package view

import (
	"context"
	"encoding/json"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"mcpx/internal/catalog"
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
	part     *policy.Part // nil = all of the catalogue
	log      *slog.Logger
	began    time.Time
	unfollow func()
	*announcements
}

func newBase(r *registry.Registry, e *executor.Executor, part *policy.Part, log *slog.Logger) base {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return base{
		registry: r, executor: e, part: part, log: log, began: time.Now(),
		announcements: &announcements{look: make(chan struct{}, 1), stop: make(chan struct{})},
	}
}

// follow starts the announcements of what shown returns (announce).
func (b *base) follow(shown func() (list func() json.RawMessage, changed bool)) {
	b.unfollow = b.registry.OnChange(b.lookAgain)
	b.loops.Go(func() { // ends with Close
		b.announce(shown, func() bool { return starting(b.catalogue(nil)) })
	})
}

// Close ends the goroutine of the view.
func (b *base) Close() {
	b.unfollow()
	b.stopOnce.Do(func() { close(b.stop) })
	b.loops.Wait()
}

// catalogue is the catalogue as a client of the view may see it.
func (b *base) catalogue(client *upstream.Client) *catalog.Snapshot {
	return b.part.Of(b.executor.Catalogue(client))
}

// Own implements [View].
func (b *base) Own(client *upstream.Client) { b.registry.Own(client) }

// Forget implements [View].
func (b *base) Forget(client *upstream.Client) { b.registry.ForgetClient(client.ID) }

// awaitCatalogue waits for servers that mcpx has never tried, at most until so long
// after the start.
func (b *base) awaitCatalogue(ctx context.Context, client *upstream.Client, wait time.Duration) {
	if starting(b.catalogue(client)) {
		b.registry.Need()
	}
	ctx, cancel := context.WithDeadline(ctx, b.began.Add(wait))
	defer cancel()
	b.registry.WaitKnown(ctx, b.part.Has)
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

// panicked logs a panic in a call, which becomes the failure of this call.
func (b *base) panicked(tool string, what any) *executor.Failure {
	b.log.Error("panic in a call", "tool", tool, "panic", what, "stack", string(debug.Stack()))
	return &executor.Failure{Code: executor.CodeExecution, Message: "internal error of mcpx; its log says more. The call may have been executed"}
}

// name is the name that a client gave.
func name(client *upstream.Client) string {
	if client == nil {
		return ""
	}
	return client.Name
}
