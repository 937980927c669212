package registry

import (
	"bytes"
	"slices"

	"mcpx/internal/catalog"
	"mcpx/internal/upstream"
)

// ownCatalogue has the servers that list other tools to one client, over its own
// sessions, than over the shared ones. It stays until the client is gone. Guarded by the
// registry's lock.
type ownCatalogue struct {
	servers map[string]ownTools
	from    *catalog.Snapshot // of all clients, that made was made from
	made    *catalog.Snapshot
}

type ownTools struct {
	generation uint64 // of the server
	tools      []catalog.Tool
}

// SnapshotOf is the newest snapshot as a client sees it: with the tools that its own
// sessions list. Before the first call of the client these are the shared ones.
func (r *Registry) SnapshotOf(client *upstream.Client) *catalog.Snapshot {
	snap := r.Snapshot()
	if client == nil || r.differing.Load() == 0 {
		return snap
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.own[client.ID]
	if own == nil {
		return snap
	}
	if own.from != snap {
		own.from, own.made = snap, own.apply(snap)
	}
	return own.made
}

// apply is a snapshot with the client's own tools.
func (o *ownCatalogue) apply(snap *catalog.Snapshot) *catalog.Snapshot {
	servers := slices.Clone(snap.Servers)
	for i := range servers {
		if own, ok := o.servers[servers[i].Name]; ok && own.generation == servers[i].Generation {
			servers[i] = servers[i].WithTools(own.tools)
		}
	}
	made := catalog.NewSnapshot(servers)
	made.Rules = snap.Rules
	return made
}

// listed takes over what the own session of a client lists, and tells the client if it is
// something else than before. The supervising goroutine of the session calls it.
func (r *Registry) listed(client *upstream.Client, e *entry, u *upstream.Upstream) {
	status := u.Status()
	name := e.server.Spec.Name
	shared, ok := r.Snapshot().Server(name)
	if !status.Known || !ok || shared.Generation != e.generation {
		return
	}
	if r.keep(client.ID, name, ownTools{e.generation, status.Tools}, shared.Tools) && client.Notify != nil {
		client.Notify("notifications/tools/list_changed", nil)
	}
}

// keep stores the tools that a server lists to a client, and reports whether they are
// others than before.
func (r *Registry) keep(client, server string, listed ownTools, shared []catalog.Tool) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sessions := r.clients[client]
	if r.ended || sessions == nil {
		return false // the client is gone
	}
	own := r.own[client]
	before := shared
	if own != nil {
		if kept, ok := own.servers[server]; ok && kept.generation == listed.generation {
			before = kept.tools
		}
	}
	if sameText(before, listed.tools) {
		return false
	}
	if own == nil {
		own = &ownCatalogue{servers: make(map[string]ownTools)}
		r.own[client] = own
	}
	if own.from = nil; sameText(shared, listed.tools) {
		delete(own.servers, server)
	} else {
		own.servers[server] = listed
	}
	r.differing.Store(int32(len(r.own)))
	return true
}

// sameText reports whether two lists of tools say the same.
func sameText(a, b []catalog.Tool) bool {
	return catalog.SameTools(a, b) || slices.EqualFunc(a, b, func(x, y catalog.Tool) bool { return bytes.Equal(x.Raw, y.Raw) })
}
