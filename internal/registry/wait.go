package registry

import (
	"context"

	"mcpx/internal/base/catalog"
)

// The waits for servers. Each ends with its ctx at the latest.

// WaitListed waits until every server for which the func is true, nil for all, has listed
// what it has beside tools, or cannot list it now, or until ctx ends. It does not wait for
// those that an earlier start has tried.
func (r *Registry) WaitListed(ctx context.Context, which func(server string) bool) {
	waited := false
	for _, s := range r.Snapshot().Servers {
		if e := r.running(s.Name); e != nil && !s.Listed && !e.onDisk && (which == nil || which(s.Name)) {
			e.lists().AwaitLists(ctx)
			waited = true
		}
	}
	if waited {
		r.publish()
	}
}

// WaitListedOne is [Registry.WaitListed] for one server, also if an earlier start has tried
// it: the server has just answered something else.
func (r *Registry) WaitListedOne(ctx context.Context, server string) {
	r.mu.Lock()
	e := r.entries[server]
	r.mu.Unlock()
	if e != nil && e.upstream != nil {
		e.lists().AwaitLists(ctx)
		r.publish()
	}
}

// WaitKnown waits until every server for which the func is true, nil for all, has a
// catalogue or has been tried once, now or at an earlier start, or until ctx ends.
func (r *Registry) WaitKnown(ctx context.Context, which func(server string) bool) {
	r.waitFor(ctx, func(s *catalog.Server) bool {
		return !s.Known && !s.Tried && s.State == catalog.Connecting && (which == nil || which(s.Name))
	})
}

// WaitServer waits until a server's catalogue is known or its first attempt has ended,
// or until ctx ends. The snapshot is up to date then. If [Registry.Apply] replaces the
// server meanwhile, WaitServer waits for the new one.
func (r *Registry) WaitServer(ctx context.Context, name string) {
	r.Prefer(name)
	r.await(ctx, name)
	r.publish()
}

// WaitTried waits until the first attempt of every server has ended, or until ctx ends.
func (r *Registry) WaitTried(ctx context.Context) {
	for _, s := range r.Snapshot().Servers {
		r.await(ctx, s.Name)
		if e := r.running(s.Name); e != nil {
			for _, u := range e.upstreams() {
				u.Await(ctx)
			}
		}
	}
	r.publish()
}

// waitFor waits for the first attempts of some servers. It makes a new snapshot, as the
// publisher may lag behind.
func (r *Registry) waitFor(ctx context.Context, which func(*catalog.Server) bool) {
	waited := false
	snap := r.Snapshot()
	for i := range snap.Servers {
		if which(&snap.Servers[i]) {
			r.await(ctx, snap.Servers[i].Name)
			waited = true
		}
	}
	if waited {
		r.publish()
	}
}

// await is [Registry.WaitServer] without the new snapshot.
func (r *Registry) await(ctx context.Context, name string) {
	for {
		e := r.running(name)
		if e == nil {
			return
		}
		e.await(ctx)
		if ctx.Err() != nil || !r.replaced(name, e) {
			return
		}
	}
}

// WaitInstalled waits until no server is installing its program at its first start, or
// until ctx ends.
func (r *Registry) WaitInstalled(ctx context.Context) {
	r.waitFor(ctx, func(s *catalog.Server) bool {
		status, ok := r.Status(s.Name)
		return ok && status.Installing
	})
}
