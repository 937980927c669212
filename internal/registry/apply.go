package registry

import (
	"context"
	"slices"
	"time"

	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// Changes has the sorted names of the servers that [Registry.Apply] started and stopped. A restarted server is in both lists.
type Changes struct{ Started, Stopped []string }

// Apply replaces the servers of the registry. It stops and starts only servers that are new, that were removed, whose definition
// has changed, or that Again names. The sessions and open calls of all other servers continue. Of the options, only Rules,
// MaxConcurrency, Queue, Grace and Again take effect.
//
// Apply calls swap, unless it is nil, as soon as the snapshot has the new servers and rules. In swap, the caller makes the rest
// of its new configuration effective, so that no call sees only a part of the new configuration. swap must only store a value,
// because all calls wait for it.
//
// A call that was prepared from an older snapshot gets a [request.ReplacedError] if its server was replaced. Open calls on the old
// server may continue for Grace; after that they fail. Because the old process may hold a lock or a port, the new one starts after
// the old one has ended (see startAfter). Calls wait for the new one as for any server that is still connecting. Other registries
// that use a server of a Pool keep its old process. The new process does not wait until that process ends.
//
// Apply does not wait for servers. After Close it does nothing, and does not call swap.
func (r *Registry) Apply(servers []Server, options Options, swap func()) Changes {
	// Only one Apply runs at a time, because it holds r.saving, and only Apply replaces the entries. Meanwhile the saver cannot
	// write the catalogues of the old entries.
	r.saving.Lock()
	defer r.saving.Unlock()
	r.mu.Lock()
	before := r.entries
	r.mu.Unlock()
	next := make(map[string]*entry, len(servers))
	for _, server := range servers {
		name := server.Spec.Name
		if old := before[name]; old == nil || old.server.Definition != server.Definition || name == options.Again {
			next[name] = r.newEntry(server)
		}
	}
	var changes Changes
	r.publishing.Lock()
	defer r.publishing.Unlock()
	r.mu.Lock()
	if !r.ended {
		var fresh []*entry
		for _, server := range servers {
			name := server.Spec.Name
			if e := next[name]; e == nil {
				next[name] = before[name].with(server)
			} else if e.upstream != nil {
				fresh = append(fresh, e)
				changes.Started = append(changes.Started, name)
			}
		}
		changes.Stopped = r.replaceBy(next, options.Grace)
		r.rules = options.Rules
		r.allCalls.Set(options.MaxConcurrency, options.Queue)
		for _, e := range fresh {
			r.startAfter(e)
		}
		r.renew()
		if swap != nil {
			swap()
		}
	}
	if r.ended {
		for _, e := range next {
			if e.pooled != nil {
				e.pooled.leave(r)
			}
		}
	}
	listeners := r.onChange
	r.mu.Unlock()
	notify(listeners)
	slices.Sort(changes.Started)
	slices.Sort(changes.Stopped)
	return changes
}

// replaceBy replaces the entries of the registry. It stops the upstreams that the new entries do not use. But an upstream of a Pool
// is stopped only if no other registry uses it. For each server whose upstream is not used any more in this registry, it also stops
// the session of the legacy era and the sessions of single clients. It returns the names of the stopped servers. The caller holds
// the lock.
func (r *Registry) replaceBy(entries map[string]*entry, grace time.Duration) (names []string) {
	if grace <= 0 {
		grace = defaultGrace
	}
	for name, old := range r.entries {
		if old.upstream == nil || (entries[name] != nil && entries[name].upstream == old.upstream) {
			continue
		}
		names = append(names, name)
		var end retired
		if old.server.Spec.Type == transport.Stdio && !old.server.PerClient {
			end = retired{name: name, definition: old.server.Definition}
		}
		if old.pooled == nil || old.pooled.drop(r) {
			for _, u := range old.upstreams() {
				r.retire(u, end, grace)
			}
		}
		if older := old.older; older.upstream != nil {
			r.retire(older.upstream, end, grace)
			older.upstream = nil
		}
		for client := range r.clients {
			r.endSessions(client, end, grace, func(key sessionKey, _ *clientSession) bool { return key.server == name })
		}
	}
	r.entries = entries
	return names
}

// startAfter starts e. A server over stdio starts after the processes that it replaces have ended: the processes of a server with
// the same name or, if the server was renamed, with the same definition. All other servers start immediately. No server waits for
// the processes of a PerClient server, because such a server has several processes at the same time anyway. The caller holds the
// lock.
func (r *Registry) startAfter(e *entry) {
	if !r.started {
		return // Start will start it
	}
	name := e.server.Spec.Name
	var before []<-chan struct{}
	for _, old := range r.retired {
		if e.server.Spec.Type == transport.Stdio && old.precedes(name, e.server.Definition) {
			before = append(before, old.ended)
		}
	}
	if len(before) == 0 {
		e.start(r)
		return
	}
	r.retiring.Go(func() { // ends soon after the grace period of the old processes
		for _, ended := range before {
			<-ended
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if now := r.entries[name]; !r.ended && now != nil && now.upstream == e.upstream {
			e.start(r)
		}
	})
}

// with returns a copy of the entry with new settings, for a server whose definition is unchanged. The copy has the same
// upstream and the same limit of calls, which gets the new value.
func (e *entry) with(server Server) *entry {
	calls, before := &server.Spec.Concurrency, e.server.Spec.Concurrency
	calls.Gate, calls.All = before.Gate, before.All
	calls.Gate.Set(calls.Max, calls.Queue)
	kept := *e
	kept.server = server
	return &kept
}

const (
	// defaultGrace is the default of [Options.Grace].
	defaultGrace = 5 * time.Second
	// retireWithin is how long a stopped server may take to end after its grace period. Close waits for that too.
	retireWithin = time.Second
)

// retired is an upstream that is being stopped. name and definition are those of its server. They are empty if no new server has to
// wait until the upstream has ended.
type retired struct {
	name, definition string
	ended            <-chan struct{}
}

// precedes reports whether a server with this name or definition must wait for the end of o.
func (o retired) precedes(name, definition string) bool {
	return o.name != "" && (o.name == name || definition != "" && o.definition == definition)
}

// retire stops an upstream. The upstream refuses new calls immediately; open calls may continue for the duration grace. The
// parameter end says, by name or definition, which new servers must wait until the upstream has ended (see precedes). Close
// cuts the grace period short, but waits until the upstream has ended. The caller holds the lock and has checked that Close has
// not begun.
func (r *Registry) retire(u *upstream.Upstream, end retired, grace time.Duration) {
	ended := make(chan struct{})
	end.ended = ended
	r.retired[u] = end
	r.retiring.Go(func() { // ends soon after grace
		defer close(ended)
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		u.Stop(ctx)
		u.Close(retireWithin)
		r.mu.Lock()
		delete(r.retired, u)
		r.mu.Unlock()
	})
}
