package registry

import (
	"context"
	"slices"
	"time"

	"mcpx/internal/catalog"
	"mcpx/internal/upstream"
)

// Changes are the names of the servers that [Registry.Apply] started and
// stopped, sorted. One that changed is in both.
type Changes struct{ Started, Stopped []string }

// Apply makes the registry one of these servers: those whose definition is
// unchanged go on undisturbed, with their open calls; the others are stopped
// and started. Of the options, Visible, MaxConcurrency and Grace take effect.
// What calls a server from now on calls the new one; what is open on the old one
// may go on for Grace and ends in an error then. Apply does not wait for that.
// After Close it does nothing.
func (r *Registry) Apply(servers []Server, options Options) Changes {
	// Only Apply replaces the entries, and one at a time does. What is being
	// written to the cache is of the old ones, and is waited for.
	r.publishing.Lock()
	r.mu.Lock()
	before := r.entries
	r.mu.Unlock()
	next := make(map[string]*entry, len(servers))
	for _, server := range servers {
		name := server.Spec.Name
		if old := before[name]; old == nil || old.server.Definition != server.Definition {
			next[name] = r.newEntry(server)
		}
	}
	var changes Changes
	r.mu.Lock()
	if !r.ended {
		changes.Started = r.begin(next, servers)
		var gone []*upstream.Upstream
		gone, changes.Stopped = r.replacedBy(next)
		r.entries, r.visible = next, options.Visible
		r.all.SetLimit(options.MaxConcurrency)
		r.retire(gone, options.Grace)
	}
	r.mu.Unlock()
	r.publishing.Unlock()
	r.publish()
	slices.Sort(changes.Started)
	slices.Sort(changes.Stopped)
	return changes
}

// begin starts what is new in next, and adds the entries that stay. The caller
// holds the lock.
func (r *Registry) begin(next map[string]*entry, servers []Server) (started []string) {
	for _, server := range servers {
		name := server.Spec.Name
		switch e := next[name]; {
		case e == nil:
			next[name] = r.entries[name].with(server)
		case e.upstream != nil:
			started = append(started, name)
			if r.started {
				e.upstream.Start()
			}
		}
	}
	return started
}

// replacedBy are the upstreams that are not in next, with the sessions of
// clients on them, and the names of their servers. The caller holds the lock.
func (r *Registry) replacedBy(next map[string]*entry) (gone []*upstream.Upstream, names []string) {
	for name, old := range r.entries {
		if old.upstream == nil || (next[name] != nil && next[name].upstream == old.upstream) {
			continue
		}
		names = append(names, name)
		gone = append(gone, old.upstream)
		for key, c := range r.clients {
			if key.server == name {
				gone = append(gone, c.upstream)
				delete(r.clients, key)
			}
		}
	}
	return gone, names
}

// with is the entry of a server whose definition is unchanged: the same
// upstream, under what else the configuration says of it now.
func (e *entry) with(server Server) *entry {
	server.Spec.Gate, server.Spec.AllGate = e.server.Spec.Gate, e.server.Spec.AllGate
	server.Spec.Gate.SetLimit(server.Spec.MaxConcurrency)
	kept := *e
	kept.server = server
	kept.last, kept.lastTool = catalog.Server{}, nil // the filter may have changed
	return &kept
}

const (
	// defaultGrace is how long open calls of a stopped server may go on.
	defaultGrace = 5 * time.Second
	// retireWithin bounds the end of a stopped server after that: Close waits for
	// it, also at the end of mcpx.
	retireWithin = time.Second
)

// retire ends upstreams whose server is gone: now for further calls, and after
// grace for open ones. The caller holds the lock. Close ends the open calls at
// once, and waits.
func (r *Registry) retire(gone []*upstream.Upstream, grace time.Duration) {
	if grace <= 0 {
		grace = defaultGrace
	}
	for _, u := range gone {
		r.retired[u] = struct{}{}
		r.retiring.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), grace)
			defer cancel()
			u.Stop(ctx)
			u.Close(retireWithin)
			r.mu.Lock()
			delete(r.retired, u)
			r.mu.Unlock()
		})
	}
}
