// Package registry is all upstreams together: the current snapshot, the
// catalogue kept on disk, and the events when either changes.
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/catalog"
	"mcpx/internal/upstream"
)

// Server is one configured server.
type Server struct {
	Spec upstream.Spec
	// Definition identifies the configuration as a whole: a server whose
	// definition is unchanged is left alone by [Registry.Apply].
	Definition string
	// Key identifies what decides which tools the server has; it names the
	// server's file in the cache. Empty = not kept on disk.
	Key string
	// Description replaces the server's instructions in texts for the model.
	Description string
	// Disabled servers are named and never connected.
	Disabled bool
	// Fault is what is wrong with the configuration: the server is unavailable
	// for that reason.
	Fault string
	// PerClient gives each client a session of its own, closed when it was idle
	// for SessionIdle (0 = 5 min).
	PerClient   bool
	SessionIdle time.Duration
}

// Options are what a registry needs beside its servers. All may be zero.
type Options struct {
	// CacheDir is where catalogues are kept; empty = nowhere.
	CacheDir string
	// Rules go into each snapshot with the servers that they were written for. The
	// registry itself hides nothing. Nil = none.
	Rules catalog.Rules
	// MaxConcurrency bounds the open calls of all servers together; 0 = no limit.
	MaxConcurrency int
	// Grace is how long open calls of a server that [Registry.Apply] stops may go
	// on; 0 = 5 s.
	Grace time.Duration
	// Logger may be nil (discard).
	Logger *slog.Logger
}

// Registry owns all upstreams. Safe for concurrent use.
type Registry struct {
	options Options
	log     *slog.Logger
	cache   *cache

	snapshot   atomic.Pointer[catalog.Snapshot]
	generation atomic.Uint64 // of the newest entry

	all *upstream.Gate // of the calls of all servers

	mu      sync.Mutex
	started bool
	ended   bool // Close has begun: nothing is started any more
	entries map[string]*entry
	clients map[string]map[string]*clientSession // by client and server
	rules   catalog.Rules
	watch   []func()
	retired map[*upstream.Upstream]retired // stopped, not gone yet

	retiring sync.WaitGroup // goroutines are added under mu, and before ended

	// Both are taken before mu. No call and no snapshot waits for saving: the disk
	// may be slow.
	saving     sync.Mutex // one file is written at a time, and not while Apply is at work
	publishing sync.Mutex // one snapshot is made at a time

	dirty   chan struct{} // holds one: many changes are one snapshot
	unsaved chan struct{} // holds one: many snapshots are one look at what to save
	stop    chan struct{}
	closed  sync.Once
	loops   sync.WaitGroup // none of them waits for the disk
	disk    sync.WaitGroup // what does
}

// entry is one server with its upstream. Its fields are guarded by the
// registry's lock, but for server, generation, onDisk and upstream, which never change, and
// saved, which saving guards.
type entry struct {
	generation uint64
	onDisk     bool // the cache had something when the entry was made
	server     Server
	upstream   *upstream.Upstream // nil if disabled or at fault
	cached     *record            // from disk, until the server itself was heard
	last       catalog.Server     // of the last snapshot, whose tools are reused while unchanged
	saved      *record            // what the cache file has
}

// New makes a registry of these servers. What the cache knows of them is in the
// first snapshot. [Registry.Start] connects.
func New(servers []Server, options Options) *Registry {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Registry{
		options: options, log: options.Logger,
		cache:   &cache{dir: options.CacheDir},
		entries: make(map[string]*entry),
		clients: make(map[string]map[string]*clientSession),
		rules:   options.Rules,
		all:     upstream.NewGate(options.MaxConcurrency),
		retired: make(map[*upstream.Upstream]retired),
		dirty:   make(chan struct{}, 1),
		unsaved: make(chan struct{}, 1),
		stop:    make(chan struct{}),
	}
	// All files at once: the first answers wait for this.
	entries := make([]*entry, len(servers))
	var loading sync.WaitGroup
	for i, server := range servers {
		loading.Go(func() { entries[i] = r.newEntry(server) })
	}
	loading.Wait()
	for _, e := range entries {
		r.entries[e.server.Spec.Name] = e
	}
	r.publish()
	return r
}

func (r *Registry) newEntry(server Server) *entry {
	server.Spec.Gate, server.Spec.AllGate = upstream.NewGate(server.Spec.MaxConcurrency), r.all
	e := &entry{server: server, generation: r.generation.Add(1)}
	if server.Disabled || server.Fault != "" {
		return e
	}
	spec := server.Spec
	if e.cached = r.cache.load(server.Key); e.cached != nil {
		e.onDisk = true
		spec.Legacy = !e.cached.Modern && e.cached.Protocol != ""
	}
	spec.OnChange = r.touch
	e.upstream = upstream.New(spec)
	return e
}

// Start connects all servers at once, in the background. After Close it does
// nothing.
func (r *Registry) Start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started || r.ended {
		return
	}
	r.started = true
	ours := make(map[string]bool)
	for _, e := range r.entries {
		ours[e.server.Key] = true
		if e.upstream != nil {
			e.upstream.Start()
		}
	}
	r.loops.Add(2)
	go r.publisher()
	go r.sweepClients()
	r.disk.Go(r.saver)
	r.disk.Go(func() { // ends with the folder, or with Close
		if n := r.cache.sweep(ours, r.stop); n > 0 {
			r.log.Debug("deleted catalogues that nobody uses", "count", n)
		}
	})
}

// Close ends all sessions at once and waits for them, within that time if it is
// not 0. What changed last is written to the cache meanwhile; within bounds that
// too, so that a disk which hangs keeps no process from its end.
func (r *Registry) Close(within time.Duration) {
	r.closed.Do(func() {
		r.mu.Lock()
		r.ended = true
		var all []*upstream.Upstream
		for _, e := range r.entries {
			if e.upstream != nil {
				all = append(all, e.upstream)
			}
		}
		for _, sessions := range r.clients {
			for _, c := range sessions {
				all = append(all, c.upstream)
			}
		}
		for u := range r.retired {
			all = append(all, u)
		}
		r.mu.Unlock()
		close(r.stop)
		saved := make(chan struct{})
		go func() { // ends with what is being written; on a disk that hangs, with the process
			r.disk.Wait()
			close(saved)
		}()
		var late <-chan time.Time
		if within > 0 {
			late = time.After(within)
		}
		closeAll(all, within)
		r.retiring.Wait()
		r.loops.Wait()
		select {
		case <-saved:
		case <-late:
		}
	})
}

func closeAll(all []*upstream.Upstream, within time.Duration) {
	var wait sync.WaitGroup
	for _, u := range all {
		wait.Go(func() { u.Close(within) })
	}
	wait.Wait()
}

// Snapshot is what is known now.
func (r *Registry) Snapshot() *catalog.Snapshot { return r.snapshot.Load() }

// OnChange registers f to be called after each new snapshot, from the
// publishing goroutine; it must not block. Call before Start.
func (r *Registry) OnChange(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch = append(r.watch, f)
}

// touch asks for a new snapshot.
func (r *Registry) touch() { signal(r.dirty) }

// signal tells the one reader of a channel that holds one signal: several before it
// reads are one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// publisher makes the snapshots; it ends with Close. What happens meanwhile is
// in the next one, so a storm of changes is as many snapshots as there is time
// for, not more.
func (r *Registry) publisher() {
	defer r.loops.Done()
	for {
		select {
		case <-r.dirty:
			r.publish()
			signal(r.unsaved)
		case <-r.stop:
			return
		}
	}
}

// publish makes a snapshot of the present state, swaps it in, and tells.
func (r *Registry) publish() {
	r.publishing.Lock()
	defer r.publishing.Unlock()
	r.mu.Lock()
	servers := make([]catalog.Server, 0, len(r.entries))
	for name, e := range r.entries {
		servers = append(servers, r.describe(name, e))
	}
	snap := catalog.NewSnapshot(servers)
	snap.Rules = r.rules
	r.snapshot.Store(snap)
	watch := r.watch
	r.mu.Unlock()
	for _, f := range watch {
		f()
	}
}

// describe is one server as the snapshot has it. Before a server has listed its tools,
// its catalogue comes from the disk.
func (r *Registry) describe(name string, e *entry) catalog.Server {
	s := catalog.Server{Name: name, Description: e.server.Description, Transport: e.server.Spec.Type, Generation: e.generation}
	switch {
	case e.server.Disabled:
		s.State = catalog.Disabled
		return s
	case e.server.Fault != "":
		s.State, s.Reason = catalog.Unavailable, e.server.Fault
		return s
	}
	status := e.upstream.Status()
	tools := status.Tools
	s.State, s.Reason, s.Protocol = status.State, status.Reason, status.Protocol
	s.Title, s.Version, s.Instructions, s.Known = status.Title, status.Version, status.Instructions, status.Known
	if !status.RetryAfter.IsZero() {
		s.RetryAfter = max(0, time.Until(status.RetryAfter).Seconds())
	}
	if status.Known {
		e.cached = nil // it has been heard itself
	}
	switch {
	case status.Known || e.cached == nil:
	case e.cached.tried:
		s.Tried = true
	default:
		tools = e.cached.tools
		s.Known, s.Title, s.Version, s.Instructions = true, e.cached.Title, e.cached.Version, e.cached.Instructions
	}
	if e.last.Name != "" && catalog.SameTools(tools, e.last.Tools) {
		return s.WithToolsOf(&e.last)
	}
	e.last = s.WithTools(tools)
	return e.last
}

// WaitKnown returns when every server has a catalogue or has been tried once, now
// or at an earlier start, or with ctx.
func (r *Registry) WaitKnown(ctx context.Context) {
	r.waitFor(ctx, func(s *catalog.Server) bool { return !s.Known && !s.Tried && s.State == catalog.Connecting })
}

// WaitServer returns when a server's catalogue is known or its first attempt has
// ended, or with ctx; the snapshot says so then. Where [Registry.Apply] replaces the
// server meanwhile, it waits for the new one.
func (r *Registry) WaitServer(ctx context.Context, name string) {
	r.await(ctx, name)
	r.publish()
}

// WaitTried returns when no server's first attempt is under way, or with ctx.
func (r *Registry) WaitTried(ctx context.Context) {
	r.waitFor(ctx, func(*catalog.Server) bool { return true })
}

// waitFor waits for the first attempts of some servers. The snapshot may lag
// behind what was waited for, and is made anew.
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

// await returns when a server's catalogue is known or its first attempt has ended, or
// with ctx. Where Apply replaces the server meanwhile, it waits for the new one.
func (r *Registry) await(ctx context.Context, name string) {
	for {
		r.mu.Lock()
		e := r.entries[name]
		r.mu.Unlock()
		if e == nil || e.upstream == nil {
			return
		}
		e.upstream.Await(ctx)
		if ctx.Err() != nil || !r.replaced(name, e) {
			return
		}
	}
}

// Status is the upstream's own view of a server; ok is false for one that is
// unknown, disabled or at fault.
func (r *Registry) Status(name string) (status upstream.Status, ok bool) {
	r.mu.Lock()
	e := r.entries[name]
	r.mu.Unlock()
	if e == nil || e.upstream == nil {
		return upstream.Status{}, false
	}
	return e.upstream.Status(), true
}

// ReplacedError says that a call was not sent: since the snapshot that it was made
// from, [Registry.Apply] has put another server in the place of its server, or none.
// The caller has to look up anew what it may do there.
type ReplacedError struct{ Server string }

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("server %q was replaced by another; the call was not sent", e.Server)
}

// Call calls a tool of a server as a snapshot has it, over the server's shared
// session or over the own session of request.Client. Errors are a [ReplacedError] and
// those of [upstream.Upstream.Call].
func (r *Registry) Call(ctx context.Context, server *catalog.Server, request upstream.Request) (json.RawMessage, error) {
	r.mu.Lock()
	e, ended := r.entries[server.Name], r.ended
	r.mu.Unlock()
	if e == nil || e.generation != server.Generation && !ended {
		return nil, &ReplacedError{server.Name}
	}
	result, err := r.call(ctx, e, request)
	if err == nil {
		return result, nil
	}
	unavailable, ok := errors.AsType[*upstream.UnavailableError](err)
	if ok && unavailable.Stopped && r.replaced(server.Name, e) {
		return nil, &ReplacedError{server.Name}
	}
	return nil, err
}

// replaced reports whether e is not the entry of its server any more.
func (r *Registry) replaced(server string, e *entry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.entries[server]
	return !r.ended && (now == nil || now.upstream != e.upstream)
}

func (r *Registry) call(ctx context.Context, e *entry, request upstream.Request) (json.RawMessage, error) {
	switch {
	case e.server.Disabled:
		return nil, &upstream.UnavailableError{State: catalog.Disabled, Reason: "disabled in the configuration"}
	case e.upstream == nil:
		return nil, &upstream.UnavailableError{State: catalog.Unavailable, Reason: e.server.Fault}
	case ctx.Err() != nil:
		return nil, ctx.Err() // a client that is gone gets no session any more
	case e.server.PerClient && request.Client != nil && request.Client.ID != "":
		u, release := r.clientUpstream(e, request.Client)
		if u == nil {
			return nil, &upstream.UnavailableError{State: catalog.Unavailable, Reason: "mcpx stopped the server", Stopped: true}
		}
		defer release()
		return u.Call(ctx, request)
	}
	return e.upstream.Call(ctx, request)
}
