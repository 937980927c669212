package registry

import (
	"slices"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
)

// ownCatalogue has those servers whose lists in the client's own sessions differ from what the client would see without these
// sessions. It exists until the client disconnects. The registry's lock guards it.
type ownCatalogue struct {
	servers map[string]ownLists
	from    *catalog.Snapshot // the shared snapshot from which made was derived
	made    *catalog.Snapshot
}

// ownLists has what a server lists in one session.
type ownLists struct {
	generation uint64 // of the server's entry
	tools      []catalog.Tool
	toolsOnly  bool // for a variant: only the tools are set, everything else is as in the shared lists
	offers     catalog.Offers
	items      *catalog.Items
}

// changed returns the kinds whose lists differ between l and before.
func (l ownLists) changed(before ownLists) (kinds []catalog.Kind) {
	if !catalog.EqualTools(l.tools, before.tools) {
		kinds = append(kinds, catalog.Tools)
	}
	for _, kind := range catalog.ItemKinds {
		if !catalog.EqualItems(l.items.Of(kind), before.items.Of(kind)) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// SnapshotOf returns the newest snapshot as a client sees it. It contains what the servers have listed in the client's own
// sessions. For servers without such a list, it contains what is listed to clients with the same capabilities, if that is known
// (see [Registry.WaitOwn]).
func (r *Registry) SnapshotOf(client *caller.Client) *catalog.Snapshot {
	snap := r.Snapshot()
	if older := r.forOlder.Load(); older != nil && isOlder(client) {
		snap = older
	}
	if client.Ident() == "" || r.differing.Load() == 0 {
		return snap
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	own, alike := r.own[client.HomeKey()], r.alike(client)
	if own == nil {
		if own = alike; own == nil || len(own.servers) == 0 {
			return snap
		}
	}
	if own.from != snap {
		own.from, own.made = snap, own.apply(snap, alike)
	}
	return own.made
}

// of returns the lists of a server, if o has them and they are from this generation of its entry. o may be nil.
func (o *ownCatalogue) of(server string, generation uint64) (lists ownLists, ok bool) {
	if o == nil {
		return lists, false
	}
	lists, ok = o.servers[server]
	return lists, ok && lists.generation == generation
}

// apply returns snap with the client's own lists and, for servers without such lists, the lists of clients with the same
// capabilities (alike).
func (o *ownCatalogue) apply(snap *catalog.Snapshot, alike *ownCatalogue) *catalog.Snapshot {
	servers := slices.Clone(snap.Servers)
	for i := range servers {
		own, ok := o.of(servers[i].Name, servers[i].Generation)
		if !ok {
			own, ok = alike.of(servers[i].Name, servers[i].Generation)
		}
		if ok {
			servers[i] = servers[i].WithTools(own.tools)
			if !own.toolsOnly {
				servers[i].Offers, servers[i].Items = own.offers, own.items
			}
		}
	}
	made := catalog.NewSnapshot(servers)
	made.Rules = snap.Rules
	return made
}

// listed stores what a server has listed in a client's own session, and notifies the client if that has changed. The goroutine
// that supervises the session calls it.
func (r *Registry) listed(client *caller.Client, e *entry, c *clientSession) {
	status := c.upstream.Status()
	name := e.server.Spec.Name
	shared, ok := r.Snapshot().Server(name)
	if !status.Known || !ok || shared.Generation != e.generation {
		return
	}
	all := ownLists{generation: e.generation, tools: shared.Tools, offers: shared.Offers, items: shared.Items}
	own := ownLists{generation: e.generation, tools: status.Tools, offers: status.Offers, items: status.Items}
	if !status.Listed { // the session has read only the tools so far
		own.toolsOnly, own.offers, own.items = true, all.offers, all.items
	}
	r.mu.Lock()
	waiting := c.waiting > 0 // read before keep is called, because a call that no longer waits has already stored the lists
	r.mu.Unlock()
	kinds := r.keep(client, name, own, all)
	r.mu.Lock()
	if status.Protocol != "" && !c.learned { // the session is connected
		r.learn(client, e, own.tools, !catalog.EqualTools(own.tools, all.tools))
		c.learned = true
	}
	r.mu.Unlock()
	if client.Notify == nil || waiting {
		return
	}
	methods := make(map[string]bool)
	for _, kind := range kinds {
		methods[kind.Changed()] = true
	}
	for method := range methods {
		client.Notify(method, nil)
	}
}

// keep stores what a server lists to a client, if that differs from the shared lists, and returns the kinds that have changed.
func (r *Registry) keep(client *caller.Client, server string, listed, shared ownLists) (kinds []catalog.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	who := client.HomeKey()
	if r.ended || r.clients[who] == nil {
		return nil // the client is gone
	}
	own := r.own[who]
	if own == nil {
		own = &ownCatalogue{servers: make(map[string]ownLists)}
	}
	first, differ := r.alike(client).of(server, listed.generation)
	kept, ok := own.of(server, listed.generation)
	if !ok {
		kept, ok = first, differ
	}
	before := shared
	if ok {
		if before.tools = kept.tools; !kept.toolsOnly {
			before = kept
		}
	}
	if kinds = listed.changed(before); len(kinds) == 0 {
		return nil
	}
	r.own[who] = own
	if own.from = nil; len(listed.changed(shared)) == 0 && !differ {
		delete(own.servers, server)
	} else {
		own.servers[server] = listed
	}
	r.countDiffering()
	return kinds
}
