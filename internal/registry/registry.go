// Package registry owns all upstreams: it makes the snapshots of their catalogues,
// keeps the catalogues on disk, and tells listeners about changes.
package registry

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/caller"
	"mcpx/internal/request"
	"mcpx/internal/upstream"
)

// Server is one configured server.
type Server struct {
	Spec upstream.Spec
	// Definition identifies the settings that a running server cannot change.
	// [Registry.Apply] restarts a server whose definition has changed.
	Definition string
	// Key names the server's file in the cache, by the settings that decide which
	// tools the server has. Empty = not kept on disk.
	Key string
	// Description replaces the server's instructions in texts for the model.
	Description string
	// Disabled servers are in the snapshot, and never connected.
	Disabled bool
	// Fault is an error in the configuration: the server is unavailable for that
	// reason.
	Fault string
	// PerClient gives each client a session of its own, which ends after SessionIdle
	// without a call (0 = 5 min).
	PerClient   bool
	SessionIdle time.Duration
	// Credentials are headers of requests to the server that come from the caller. Only a
	// session of one client has them (PerClient); the catalogue comes from one that has none.
	Credentials map[string]Credential
	// Exchange, where not nil, makes what puts a token on the requests of one caller that is
	// got for the caller's own, a JWT, and the secrets to be struck out of texts. subject
	// yields the caller's token as it came last. It goes with PerClient too.
	Exchange func(subject func() string) (authorize func(http.RoundTripper) http.RoundTripper, secrets func() []string)
}

// Options are the settings of a registry. All may be zero.
type Options struct {
	// CacheDir is the folder of kept catalogues; empty = catalogues are not kept.
	CacheDir string
	// Rules go into each snapshot, together with the servers of the same config. The
	// registry itself hides nothing. Nil = no rules.
	Rules catalog.Rules
	// MaxConcurrency bounds the open calls of all servers together; 0 = no limit.
	MaxConcurrency int
	// Queue bounds the calls that wait for that.
	Queue semaphore.Queue
	// SessionLimit refuses one more session of a server with a single client, where open of them are as many as
	// there may be; nil = nothing does.
	SessionLimit func(open int) error
	// Grace is how long open calls may go on when [Registry.Apply] stops their server;
	// 0 = 5 s.
	Grace time.Duration
	// Patience is how long a first attempt must have been under way for a server to count
	// as tried when mcpx ends. SDK clients start a server once to learn its era, and
	// again to work with it: the short first run says nothing of its upstreams.
	Patience time.Duration
	// Logger may be nil (discard).
	Logger *slog.Logger
}

// Registry owns all upstreams. Safe for concurrent use.
type Registry struct {
	options Options
	log     *slog.Logger
	cache   *cache

	handler    request.Handler // the chain, which ends with send
	snapshot   atomic.Pointer[catalog.Snapshot]
	generation atomic.Uint64 // of the newest entry
	soleClient
	bounds

	mu        sync.Mutex
	entries   map[string]*entry
	preferred string // from Prefer; Start starts this server first
	ofClients
	rules catalog.Rules
	listeners
	retired map[*upstream.Upstream]retired // stopped, not ended yet

	// Lock both before mu. Calls and snapshots never wait for saving, as the disk may
	// be slow.
	saving     sync.Mutex // held to write a file, and by Apply
	publishing sync.Mutex // held to make a snapshot

	signals
	work
}

// soleClient is the only client of this process, from Own; there is none where many share it.
type soleClient struct {
	owner   atomic.Pointer[caller.Client]
	owned   chan struct{} // closed by the first Own
	ownOnce func()        // closes owned
}

// bounds are for all servers together.
type bounds struct {
	allCalls *semaphore.Semaphore // the open calls
	installs *semaphore.Semaphore // the commands that install at the same time
}

// ofClients are the sessions and catalogues of single clients, by client, under mu. They live in this process: they are no
// part of the state that replicas share.
type ofClients struct {
	clients map[string]map[sessionKey]*clientSession
	own     map[string]*ownCatalogue
	// differing is the number of clients with a catalogue of their own.
	differing atomic.Int32
	turn      atomic.Uint32 // of the instances at which sessions of clients begin
}

// listeners are told of changes, and of notifications that mcpx does not know. Under mu.
type listeners struct {
	onChange  []*func()
	onUnknown []*func(server, method string, params json.RawMessage)
}

// signals wake the goroutines.
type signals struct {
	needed  chan struct{} // closed by need
	need    func()        // closes needed, once
	dirty   chan struct{} // holds one signal: publish
	unsaved chan struct{} // holds one signal: save
	stop    chan struct{}
	closed  sync.Once
}

// work is what goes on until Close.
type work struct {
	started  bool           // under mu
	ended    bool           // under mu: Close has begun, and no upstream starts
	retiring sync.WaitGroup // its goroutines start under mu, unless ended
	loops    sync.WaitGroup // goroutines that never wait for the disk
	disk     sync.WaitGroup // goroutines that use the disk
}

// entry is one server with its upstream. The fields generation, onDisk, server,
// upstream and instances never change; saving guards saved, and the registry's lock the others.
type entry struct {
	generation uint64
	began      time.Time
	onDisk     bool // the cache had a file when the entry was made
	legacy     bool // that file says that the server is legacy
	server     Server
	upstream   *upstream.Upstream // nil if disabled or at fault
	instances  *instances         // nil if there is one only; upstream is the first
	cached     *record            // from disk, until the server has listed all that it has
	last       catalog.Server     // in the last snapshot; its tools are reused while unchanged
	saved      *record            // the content of the cache file
}

// New makes a registry of these servers. The first snapshot has the catalogues from
// disk. [Registry.Start] connects the servers.
func New(servers []Server, options Options) *Registry {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Registry{
		options: options, log: options.Logger, rules: options.Rules,
		cache:      &cache{dir: options.CacheDir},
		entries:    make(map[string]*entry),
		retired:    make(map[*upstream.Upstream]retired),
		soleClient: soleClient{owned: make(chan struct{})},
		bounds:     bounds{semaphore.New(options.MaxConcurrency, options.Queue), semaphore.New(upstream.MostInstalls, semaphore.Queue{})},
		signals: signals{
			needed: make(chan struct{}), dirty: make(chan struct{}, 1), unsaved: make(chan struct{}, 1), stop: make(chan struct{}),
		},
	}
	r.clients, r.own = make(map[string]map[sessionKey]*clientSession), make(map[string]*ownCatalogue)
	r.handler = r.send
	r.ownOnce = sync.OnceFunc(func() { close(r.owned) })
	r.need = sync.OnceFunc(func() { close(r.needed) })
	// In parallel, as the first answers wait for this.
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
	calls := &server.Spec.Concurrency
	calls.Gate, calls.All, calls.Installs = semaphore.New(calls.Max, calls.Queue), r.allCalls, r.installs
	e := &entry{server: server, generation: r.generation.Add(1), began: time.Now()}
	if server.Disabled || server.Fault != "" {
		return e
	}
	spec := server.Spec
	spec.Introduction.Capabilities = caller.AllCapabilities
	if !server.PerClient { // whose shared session is there for the catalogue
		spec.Introduction.Capabilities, spec.Introduction.Owner = caller.SharedCapabilities, r.owner.Load
	}
	if e.cached = r.cache.load(server.Key); e.cached != nil {
		e.onDisk = true
		spec.Seen = !e.cached.tried
		e.legacy = e.cached.legacy()
		spec.Legacy = e.legacy
	}
	spec.OnChange = r.changed
	spec.OnUnknown = func(method string, params json.RawMessage) { r.unknown(spec.Name, method, params) }
	if e.instances = r.newInstances(e, spec); e.instances != nil {
		e.upstream = e.instances.all[0]
	} else {
		e.upstream = upstream.New(spec)
	}
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
	used := make(map[string]bool)
	first := r.entries[r.preferred]
	if first != nil {
		first.start()
	}
	for _, name := range slices.Sorted(maps.Keys(r.entries)) {
		e := r.entries[name]
		used[e.server.Key] = true
		if e != first {
			e.start()
		}
	}
	r.loops.Add(2)
	go r.publisher()
	go r.sweepClients()
	r.disk.Go(r.saver)
	r.disk.Go(func() { // ends after all files, or with Close
		if n := r.cache.sweep(used, r.stop); n > 0 {
			r.log.Debug("deleted catalogues that nobody uses", "count", n)
		}
	})
}

// Close ends all sessions at once and waits for them; if within is not 0, no longer
// than that. Meanwhile the saver writes the last changes to the cache, within the same
// bound, so that mcpx can end although the disk hangs.
func (r *Registry) Close(within time.Duration) {
	r.closed.Do(func() {
		r.mu.Lock()
		r.ended = true
		var all []*upstream.Upstream
		for _, e := range r.entries {
			all = append(all, e.upstreams()...)
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
		go func() { // ends with the last write; if the disk hangs, with the process
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

// Snapshot is the newest snapshot.
func (r *Registry) Snapshot() *catalog.Snapshot { return r.snapshot.Load() }

// changed asks for a new snapshot.
func (r *Registry) changed() { signal(r.dirty) }

// signal sends to a channel that holds one signal. It does nothing if the channel is
// full: the reader has yet to see an earlier signal.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// publisher makes the snapshots until Close. Changes during one snapshot go into the
// next one together.
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

// Refresh makes a snapshot of the present state: the publisher may lag behind.
func (r *Registry) Refresh() { r.publish() }

// publish makes a snapshot of the present state, and calls the listeners.
func (r *Registry) publish() {
	r.publishing.Lock()
	defer r.publishing.Unlock()
	r.mu.Lock()
	r.renew()
	listeners := r.onChange
	r.mu.Unlock()
	notify(listeners)
}

// renew makes a snapshot of the present state. The caller holds publishing and mu.
func (r *Registry) renew() {
	servers := make([]catalog.Server, 0, len(r.entries))
	for name, e := range r.entries {
		servers = append(servers, r.describe(name, e))
	}
	snap := catalog.NewSnapshot(servers)
	snap.Rules = r.rules
	r.snapshot.Store(snap)
}

func notify(listeners []*func()) {
	for _, f := range listeners {
		(*f)()
	}
}

// describe is one server for the snapshot. Before the server has listed its tools, the
// catalogue comes from the disk.
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
	status := e.status()
	tools := status.Tools
	s.State, s.Reason, s.Protocol = status.State, status.Reason, status.Protocol
	s.Title, s.Version, s.Instructions, s.Known = status.Title, status.Version, status.Instructions, status.Known
	if !status.RetryAfter.IsZero() {
		s.RetryAfter = max(0, time.Until(status.RetryAfter).Seconds())
	}
	if status.Known && status.Listed {
		e.cached = nil // the server has answered
	}
	s.Offers, s.Items, s.Listed = e.items(&status)
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

// items is what a server has beside tools. Before it has listed that, it comes from the
// disk. The caller holds the lock.
func (e *entry) items(status *upstream.Status) (offers catalog.Offers, items *catalog.Items, listed bool) {
	if !status.Listed && e.cached != nil && e.cached.Offers != nil {
		return *e.cached.Offers, e.cached.items, true
	}
	return status.Offers, status.Items, status.Listed
}

// Status is the status of a server's upstream. ok is false for a server that is unknown,
// disabled or at fault.
func (r *Registry) Status(name string) (status upstream.Status, ok bool) {
	if e := r.running(name); e != nil {
		return e.status(), true
	}
	return upstream.Status{}, false
}

// running is the entry of a server with an upstream, nil for one that is unknown, disabled
// or at fault.
func (r *Registry) running(name string) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[name]; e != nil && e.upstream != nil {
		return e
	}
	return nil
}
