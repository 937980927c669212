package registry

import (
	"cmp"
	"maps"
	"slices"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
)

// ownCatalogue has what servers list in the sessions of one client, home or principal, where that differs from what the client
// would see otherwise. It is removed when the client disconnects. When a home or principal has no session any more, only lists that
// mcpx cannot get in another way are kept (see keepsLists). The registry's lock guards it.
type ownCatalogue struct {
	servers map[string]ownLists
	made    map[basis]*catalog.Snapshot // the snapshots made with these lists; all are removed when any ownCatalogue changes
}

// basis has what apply needs to make a snapshot, besides the client's ownCatalogue: the shared snapshot, the ownCatalogue of
// the client's principal, and the ownCatalogue of clients with the same capabilities. The two catalogues may be nil.
type basis struct {
	shared               *catalog.Snapshot
	ofPrincipal, similar *ownCatalogue
}

// maxMade is the maximum number of snapshots that are kept in one ownCatalogue. There can be several for one principal, because
// the clients of the principal differ.
const maxMade = 8

// ownLists has what a server lists in one session.
type ownLists struct {
	generation uint64 // the generation of the server's entry
	tools      []catalog.Tool
	toolsOnly  bool // only the tools are from the session; everything else is as in the shared lists
	offers     catalog.Offers
	items      *catalog.Items
	// alone is set if a server with Logins lists nothing in the shared session. Then the lists of this session are all
	// that mcpx knows about the server.
	alone *introduced
}

// introduced is what a server said about itself in the handshake of a session.
type introduced struct{ title, version, instructions, protocol string }

// changed returns the kinds (tools, resources, resource templates, prompts) whose lists in l differ from the previous lists. It
// does not compare skills.
func (l ownLists) changed(previous ownLists) (kinds []catalog.Kind) {
	if !catalog.EqualTools(l.tools, previous.tools) {
		kinds = append(kinds, catalog.Tools)
	}
	for _, kind := range catalog.ItemKinds {
		if !catalog.EqualItems(l.items.Of(kind), previous.items.Of(kind)) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// SnapshotOf returns the newest snapshot as a client sees it. It contains what the servers have listed in the client's own
// sessions, or in the sessions of its principal. For servers without such a list, it contains what is listed to clients with the
// same capabilities, if that is known (see [Registry.WaitOwn]).
func (r *Registry) SnapshotOf(client *caller.Client) *catalog.Snapshot {
	snap := r.Snapshot()
	if older := r.forOlder.Load(); older != nil && isOlder(client) {
		snap = older
	}
	if r.differing.Load() == 0 || client.Ident() == "" && client.On() == nil {
		return snap
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	on := basis{shared: snap, ofPrincipal: r.own[client.PrincipalHomeKey()]}
	var own *ownCatalogue
	if client.Ident() != "" {
		own, on.similar = r.own[client.HomeKey()], r.similar(client)
	}
	first := cmp.Or(own, on.ofPrincipal)
	if first == nil {
		if first = on.similar; first == nil || len(first.servers) == 0 {
			return snap
		}
	}
	made := first.made[on]
	if made == nil {
		maps.DeleteFunc(first.made, func(k basis, _ *catalog.Snapshot) bool {
			return k.shared != r.snapshot.Load() && k.shared != r.forOlder.Load()
		})
		if made = own.apply(on); first.made == nil || len(first.made) >= maxMade {
			first.made = make(map[basis]*catalog.Snapshot)
		}
		first.made[on] = made
	}
	return made
}

// listsOf returns the lists of a server. ok is false if o is nil or has no lists of the server, or if the lists are from an
// earlier entry of the server.
func (o *ownCatalogue) listsOf(server string, generation uint64) (lists ownLists, ok bool) {
	if o == nil {
		return lists, false
	}
	lists, ok = o.servers[server]
	return lists, ok && lists.generation == generation
}

// apply returns the shared snapshot with other lists for some servers. For each server, it takes the first lists that
// exist: the client's own lists (o), the lists of the client's principal, or the lists of clients with the same
// capabilities. o may be nil.
func (o *ownCatalogue) apply(on basis) *catalog.Snapshot {
	servers := slices.Clone(on.shared.Servers)
	for i := range servers {
		for _, from := range []*ownCatalogue{o, on.ofPrincipal, on.similar} {
			own, ok := from.listsOf(servers[i].Name, servers[i].Generation)
			if !ok {
				continue
			}
			servers[i] = servers[i].WithTools(own.tools)
			if !own.toolsOnly {
				servers[i].Offers, servers[i].Items = own.offers, own.items
			}
			if s := &servers[i]; own.alone != nil {
				s.State, s.Reason, s.Known, s.Listed = catalog.Ready, "", true, !own.toolsOnly
				s.Title, s.Version = own.alone.title, own.alone.version
				s.Instructions, s.Protocol = own.alone.instructions, own.alone.protocol
			}
			break
		}
	}
	made := catalog.NewSnapshot(servers)
	made.Rules = on.shared.Rules
	return made
}

// listed stores what a server has listed in a client's own session. If that has changed, listed notifies the client, unless a call
// of the client waits for the lists. In the session of a principal, it calls the listeners of OnChange instead. The goroutine that
// supervises the session calls listed, and so do Relist and the calls that have waited for the lists.
func (r *Registry) listed(client *caller.Client, e *entry, c *clientSession) {
	status := c.upstream.Status()
	name := e.server.Spec.Name
	shared, ok := r.Snapshot().Server(name)
	if !status.Known || !ok || shared.Generation != e.generation {
		return
	}
	all := ownLists{generation: e.generation, tools: shared.Tools, offers: shared.Offers, items: shared.Items}
	own := ownLists{generation: e.generation, tools: status.Tools, offers: status.Offers, items: status.Items}
	if e.server.Logins != nil && !shared.Known {
		own.alone = &introduced{status.Title, status.Version, status.Instructions, status.Protocol}
	}
	if !status.Listed { // the session has read only the tools so far
		own.toolsOnly, own.offers, own.items = true, all.offers, all.items
	}
	r.mu.Lock()
	// c.waiting is read before keep is called, because the call that waits for the lists may store them, and stop waiting, at any
	// moment.
	waiting := c.waiting > 0
	r.mu.Unlock()
	kinds := r.keep(client, name, own, all)
	r.mu.Lock()
	if status.Protocol != "" && !c.learned && !client.IsPrincipal() { // the session is connected
		r.learn(client, e, own.tools, !catalog.EqualTools(own.tools, all.tools))
		c.learned = true
	}
	listeners := r.onChange
	r.mu.Unlock()
	if client.IsPrincipal() && (len(kinds) > 0 || own.alone != nil) {
		notify(listeners) // the listeners find out which clients see a change
	}
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

// keep stores what a server lists to a client, if that differs from what the client would see otherwise. It returns the kinds
// that have changed.
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
	first, differ := r.similar(client).listsOf(server, listed.generation)
	kept, ok := own.listsOf(server, listed.generation)
	if !ok {
		kept, ok = first, differ
	}
	before := shared
	if ok {
		if before.tools = kept.tools; !kept.toolsOnly {
			before = kept
		}
	}
	if kinds = listed.changed(before); len(kinds) == 0 && (listed.alone == nil || ok && kept.alone != nil) {
		return nil
	}
	r.own[who] = own
	r.forgetMade()
	if len(listed.changed(shared)) == 0 && !differ && listed.alone == nil {
		delete(own.servers, server)
	} else {
		own.servers[server] = listed
	}
	r.countDiffering()
	return kinds
}

// forgetMade removes all snapshots that were made with an ownCatalogue or a variant, because one of these has changed. The caller
// holds the lock.
func (r *Registry) forgetMade() {
	for _, own := range r.own {
		clear(own.made)
	}
	for _, v := range r.variants {
		clear(v.made)
	}
}
