package registry

import (
	"context"
	"slices"
	"time"

	"mcpx/internal/upstream"
)

// Changes are the names of the servers that [Registry.Apply] started and
// stopped, sorted. One that changed is in both.
type Changes struct{ Started, Stopped []string }

// Apply makes the registry one of these servers: those whose definition is
// unchanged go on undisturbed, with their open calls; the others are stopped
// and started. Of the options, Rules, MaxConcurrency and Grace take effect.
// A call made from an older snapshot gets a [ReplacedError] where its server is
// another now; one that is open on the old server may go on for Grace and ends in
// an error then. Where a server is a process, the new one is started when the old
// one has ended, since that may hold a lock or a port; calls wait for it as for any
// that is connecting. Apply does not wait. After Close it does nothing.
func (r *Registry) Apply(servers []Server, options Options) Changes {
	// Only Apply replaces the entries, and one at a time does. What is being
	// written to the cache is of the old ones, and is waited for.
	r.saving.Lock()
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
		r.all.SetLimit(options.MaxConcurrency)
		for _, e := range fresh {
			r.begin(e)
		}
	}
	r.mu.Unlock()
	r.saving.Unlock()
	r.publish()
	slices.Sort(changes.Started)
	slices.Sort(changes.Stopped)
	return changes
}

// replaceBy puts next in the place of the entries, and retires the upstreams that
// are not in it, with the sessions of clients on them. It returns the names of
// their servers. The caller holds the lock.
func (r *Registry) replaceBy(next map[string]*entry, grace time.Duration) (names []string) {
	if grace <= 0 {
		grace = defaultGrace
	}
	for name, old := range r.entries {
		if old.upstream == nil || (next[name] != nil && next[name].upstream == old.upstream) {
			continue
		}
		names = append(names, name)
		var what retired
		if old.server.Spec.Type == upstream.Stdio && !old.server.PerClient {
			what = retired{name: name, definition: old.server.Definition}
		}
		r.retire(old.upstream, what, grace)
		for client := range r.clients {
			r.endSessions(client, what, grace, func(server string, _ *clientSession) bool { return server == name })
		}
	}
	r.entries = next
	return names
}

// begin starts a new server. One that is a process waits for the end of those
// before it, under its name or, where it was renamed, with its definition; the
// others do not wait for that, nor does anything for a process of which each client
// has one: several live side by side anyway. The caller holds the lock.
func (r *Registry) begin(e *entry) {
	if !r.started {
		return // Start does it
	}
	name := e.server.Spec.Name
	var before []<-chan struct{}
	for _, old := range r.retired {
		if e.server.Spec.Type == upstream.Stdio && old.before(name, e.server.Definition) {
			before = append(before, old.ended)
		}
	}
	if len(before) == 0 {
		e.upstream.Start()
		return
	}
	r.retiring.Go(func() { // ends with them, which is soon after their grace
		for _, ended := range before {
			<-ended
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if now := r.entries[name]; !r.ended && now != nil && now.upstream == e.upstream {
			e.upstream.Start()
		}
	})
}

// with is the entry of a server whose definition is unchanged: the same
// upstream, under what else the configuration says of it now.
func (e *entry) with(server Server) *entry {
	server.Spec.Gate, server.Spec.AllGate = e.server.Spec.Gate, e.server.Spec.AllGate
	server.Spec.Gate.SetLimit(server.Spec.MaxConcurrency)
	kept := *e
	kept.server = server
	return &kept
}

const (
	// defaultGrace is how long open calls of a stopped server may go on.
	defaultGrace = 5 * time.Second
	// retireWithin bounds the end of a stopped server after that: Close waits for
	// it, also at the end of mcpx.
	retireWithin = time.Second
)

// retired is an upstream on its way to its end. The name and definition of its
// server are empty where nobody waits for that.
type retired struct {
	name, definition string
	ended            <-chan struct{}
}

// before reports whether it has the place of a server with this name, or with
// this definition under another one.
func (o retired) before(name, definition string) bool {
	return o.name != "" && (o.name == name || definition != "" && o.definition == definition)
}

// retire ends an upstream: now for further calls, and after grace for open ones.
// The caller holds the lock, and has looked that Close has not begun. Close ends
// the open calls at once, and waits.
func (r *Registry) retire(u *upstream.Upstream, what retired, grace time.Duration) {
	ended := make(chan struct{})
	what.ended = ended
	r.retired[u] = what
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
