package registry

import (
	"context"
	"sync"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
)

// The functions below that have a ctx wait for servers. Each of them returns when ctx ends, at the latest.

// WaitListed waits until the servers have listed what they offer besides tools, or cannot do so now. It waits only for the
// servers for which the parameter matches returns true; nil means all servers. It does not wait for a server if an earlier run of
// mcpx, or another replica, has left a record that says what the server offers besides tools, or that it sent no list of tools.
func (r *Registry) WaitListed(ctx context.Context, matches func(server string) bool) {
	waited := false
	for _, s := range r.Snapshot().Servers {
		if e := r.running(s.Name); e != nil && !s.Listed && !e.recorded && (matches == nil || matches(s.Name)) {
			e.lists().AwaitLists(ctx)
			waited = true
		}
	}
	if waited {
		r.Refresh()
	}
}

// WaitListedOne waits until one server has listed what it offers besides tools, or cannot do so now. Unlike WaitListed, it also
// waits if an earlier run of mcpx, or another replica, has left a record of the server.
func (r *Registry) WaitListedOne(ctx context.Context, server string) {
	if e := r.running(server); e != nil {
		e.lists().AwaitLists(ctx)
		r.Refresh()
	}
}

// WaitKnown waits until each server has a catalogue, or one attempt to connect to the server has ended, in this run of mcpx or
// in an earlier one. It waits only for the servers for which the parameter matches returns true; nil means all servers. It does
// not wait for idle servers.
func (r *Registry) WaitKnown(ctx context.Context, matches func(server string) bool) {
	r.waitFor(ctx, func(s *catalog.Server) bool {
		return !s.Known && !s.Tried && s.State == catalog.Connecting && (matches == nil || matches(s.Name))
	})
}

// WaitServer waits until the first attempt to connect to a server has ended (see [upstream.Upstream.Await]). It does not wait
// for an idle server. Afterwards the snapshot is up to date. If [Registry.Apply] replaces the server meanwhile, WaitServer
// waits for the new server.
func (r *Registry) WaitServer(ctx context.Context, name string) {
	r.Prefer(name)
	r.await(ctx, name)
	r.Refresh()
}

// WaitStart waits until the first attempt to connect to a server has ended, but at most for the time limit. If the parameter
// starting is not nil, WaitStart then waits on as long as the server's command installs or starts (see
// [upstream.Upstream.AwaitStart]). From time to time it calls starting with a text that says what the command does. Afterwards
// the snapshot is up to date. If [Registry.Apply] replaces the server meanwhile, WaitStart waits for the new server.
func (r *Registry) WaitStart(ctx context.Context, name string, limit time.Duration, starting func(activity string)) {
	r.Prefer(name)
	for e := r.running(name); e != nil; e = r.running(name) {
		if e.instances != nil {
			bounded, cancel := context.WithTimeout(ctx, limit)
			e.await(bounded)
			cancel()
		} else {
			e.upstream.AwaitStart(ctx, limit, starting)
		}
		if ctx.Err() != nil || !r.replaced(name, e) {
			break
		}
	}
	r.Refresh()
}

// Relist asks a server for its tools again, over the shared session and the client's own session, because the server may have
// changed them without a notification (see [upstream.Upstream.Relist]). The client's own session is not asked if it needs
// credentials or a login.
func (r *Registry) Relist(ctx context.Context, client *caller.Client, name string) {
	e := r.running(name)
	if e == nil {
		return
	}
	r.mu.Lock()
	owner := e.server.ownerFor(client)
	own := r.clients[owner.HomeKey()][sessionKey{server: name}]
	r.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { e.lists().Relist(ctx) }) // ends with ctx
	if own != nil {
		own.upstream.Relist(ctx)
		r.listed(owner.Remembered(), e, own)
	}
	both.Wait()
	r.Refresh()
}

// WaitTried waits until the first attempt to connect has ended for every server and for each of its instances. It does not wait for
// what is [catalog.Idle], because mcpx is not connecting to that.
func (r *Registry) WaitTried(ctx context.Context) {
	for _, s := range r.Snapshot().Servers {
		r.await(ctx, s.Name)
		if e := r.running(s.Name); e != nil {
			for _, u := range e.upstreams() {
				u.Await(ctx)
			}
		}
	}
	r.Refresh()
}

// WaitAgain does what [Registry.WaitTried] does. It also checks servers that other registries of this process may have
// connected long ago (see [upstream.Upstream.Again]). The result silent maps the name of each server that does not answer to
// the reason.
func (r *Registry) WaitAgain(ctx context.Context) (silent map[string]string) {
	silent = make(map[string]string)
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, s := range r.Snapshot().Servers {
		if e := r.running(s.Name); e != nil && e.pooled != nil {
			asking.Go(func() { // ends with ctx at the latest
				if why := e.upstream.Again(ctx); why != "" {
					mu.Lock()
					silent[s.Name] = why
					mu.Unlock()
				}
			})
		}
	}
	asking.Wait()
	r.WaitTried(ctx)
	return silent
}

// waitFor waits for the first attempts to connect to the servers for which the parameter matches returns true, and then
// refreshes the snapshot.
func (r *Registry) waitFor(ctx context.Context, matches func(*catalog.Server) bool) {
	waited := false
	snap := r.Snapshot()
	for i := range snap.Servers {
		if matches(&snap.Servers[i]) {
			r.await(ctx, snap.Servers[i].Name)
			waited = true
		}
	}
	if waited {
		r.Refresh()
	}
}

// await waits until the first attempt to connect to a server has ended. If [Registry.Apply] replaces the server meanwhile,
// await waits for the new server.
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

// WaitInstalled waits until no server is still installing its program at its first start.
func (r *Registry) WaitInstalled(ctx context.Context) {
	r.waitFor(ctx, func(s *catalog.Server) bool {
		status, ok := r.Status(s.Name)
		return ok && status.Installing
	})
}

// Need records that a request needs an upstream, or that the first tools/list was answered.
func (r *Registry) Need() { r.need() }

// Needed returns a channel that is closed by the first call of Need. The owner of the registry may wait for that call before it
// calls Start, because starting many processes earlier would delay the first answers.
func (r *Registry) Needed() <-chan struct{} { return r.needed }

// Prefer makes a server start and install before the other servers that have not begun yet, because a caller is about to wait for
// it. Prefer does not start an idle server.
func (r *Registry) Prefer(name string) {
	r.mu.Lock()
	r.preferred = name
	r.mu.Unlock()
	if e := r.running(name); e != nil {
		e.upstream.Prefer()
	}
}

// Ask starts a server if it is idle.
func (r *Registry) Ask(name string) {
	if e := r.running(name); e != nil {
		for _, u := range e.upstreams() {
			u.Ask()
		}
		r.Refresh()
	}
}

// Expect starts a server if it is idle, because the client is about to call it. For a PerClient server, it opens the client's
// own session instead, unless the client has no ID or the session needs credentials or a login. It does not wait.
func (r *Registry) Expect(client *caller.Client, name string) {
	e := r.running(name)
	switch {
	case e == nil || e.status().State != catalog.Idle:
	case !e.server.PerClient:
		r.Ask(name)
	case client != nil && client.ID != "" && !e.server.ofCallers():
		if _, release, err := r.clientSession(e, client, nil, false); err == nil && release != nil {
			release()
		}
	}
}

// Retry makes an unavailable server try to connect again now, instead of after the usual pause.
func (r *Registry) Retry(name string) {
	if e := r.running(name); e != nil {
		for _, u := range e.upstreams() {
			u.Retry()
		}
	}
}
