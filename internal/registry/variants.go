package registry

import (
	"context"
	"sync"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
)

// maxVariants is the maximum number of stored variants.
const maxVariants = 64

// variant has the tools that PerClient servers list to clients that declare the same capabilities. It is needed because the
// shared session, which declares all capabilities, sometimes lists tools that the server does not offer to these clients. A
// variant is made from the first list of a client's session, because later lists may depend on the calls of that client. The
// registry's lock guards it.
type variant struct {
	ownCatalogue
	// tried has, by server, the generation of the server's entry when a session last listed its tools or failed to list them.
	// WaitOwn does not open a session for that server again.
	tried map[string]uint64
}

// variantKey returns a key that is the same for all clients of one era to which mcpx relays the same capabilities. It includes
// the era, because a server may have other tools in the other era.
func variantKey(client *caller.Client) string {
	return eraOf(!isOlder(client)) + " " + string(client.Relayed())
}

// variantOf returns the variant for a client; nil if there is none yet. The caller holds the lock.
func (r *Registry) variantOf(client *caller.Client) *variant {
	return r.variants[variantKey(client)]
}

// learn stores tools, the first list of a client's session. Clients with the same capabilities see these tools as long as their own
// sessions have not listed any. If differ is false, tools are the shared ones, or could not be listed; then learn only records that
// the server was tried. The caller holds the lock.
func (r *Registry) learn(client *caller.Client, e *entry, tools []catalog.Tool, differ bool) {
	name, v := e.server.Spec.Name, r.variantOf(client)
	if v == nil {
		for capabilities := range r.variants {
			if len(r.variants) < maxVariants {
				break
			}
			delete(r.variants, capabilities)
		}
		v = &variant{ownCatalogue{servers: make(map[string]ownLists)}, make(map[string]uint64)}
		r.variants[variantKey(client)] = v
	}
	v.tried[name] = e.generation
	if differ {
		v.servers[name] = ownLists{generation: e.generation, tools: tools, toolsOnly: true}
	} else {
		delete(v.servers, name)
	}
	r.forgetMade()
	r.countDiffering()
}

// similar returns the lists that servers show to clients with the same capabilities; nil if nothing is known. They are used for
// servers that have not listed anything in the client's own sessions. The caller holds the lock.
func (r *Registry) similar(client *caller.Client) *ownCatalogue {
	if v := r.variantOf(client); v != nil {
		return &v.ownCatalogue
	}
	return nil
}

// countDiffering sets the field differing after a change of own or variants. The caller holds the lock.
func (r *Registry) countDiffering() { r.differing.Store(int32(len(r.own) + len(r.variants))) }

// WaitOwn is for the PerClient servers for which the func matches returns true. It waits until mcpx knows what they list to clients
// with the capabilities of this client. If that is unknown, WaitOwn opens the client's own session and waits for its lists. It does
// so once for each server and set of capabilities. After a failure, such clients see the shared lists until one of their sessions
// has listed others.
//
// For servers that list only to principals who have logged in, WaitOwn opens the principal's session. It skips servers that need
// credentials from callers. WaitOwn returns when ctx ends, at the latest.
func (r *Registry) WaitOwn(ctx context.Context, client *caller.Client, matches func(server string) bool) {
	if client.Ident() == "" || ctx.Err() != nil {
		return
	}
	snap := r.Snapshot()
	var all sync.WaitGroup
	defer all.Wait()
	r.mu.Lock()
	var untried []*entry
	v := r.variantOf(client)
	for name, e := range r.entries {
		if r.principalLists(e, client) && matches(name) {
			all.Go(func() { _ = r.listForPrincipal(ctx, e, client) }) // ends with ctx
		}
		if !e.server.PerClient || e.upstream == nil || e.server.ofCallers() || v != nil && v.tried[name] == e.generation ||
			e.server.ownerFor(client) != client { // the session belongs to the principal, so its lists do not depend on this client
			continue
		}
		if shared, ok := snap.Server(name); ok && shared.Known {
			untried = append(untried, e)
		}
	}
	r.mu.Unlock()
	for _, e := range untried {
		if matches(e.server.Spec.Name) {
			all.Go(func() { r.listFor(ctx, e, client) }) // ends with ctx
		}
	}
}

// listFor opens a client's session with a server and waits for its lists. Meanwhile the client gets no notifications about the
// lists, because its request is waiting for them anyway.
func (r *Registry) listFor(ctx context.Context, e *entry, client *caller.Client) {
	c, release, err := r.clientSession(e, client, nil, true)
	if err != nil || c == nil {
		return
	}
	defer release()
	c.upstream.Await(ctx)
	r.listed(client, e, c)
	r.mu.Lock()
	defer r.mu.Unlock()
	c.waiting--
	if v := r.variantOf(client); !c.learned && (v == nil || v.tried[e.server.Spec.Name] != e.generation) {
		r.learn(client, e, nil, false)
	}
}
