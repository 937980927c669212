// Package registry owns the upstreams. It combines their catalogues into snapshots, stores the catalogues on disk, and notifies
// listeners about changes.
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
	// Definition identifies the settings that cannot change while the server runs. If it changes, [Registry.Apply] restarts the
	// server.
	Definition string
	// Key names the file of the server in the cache. It depends on the settings that determine which tools the server has. If
	// it is "", the catalogue is neither stored on disk nor exchanged with other replicas.
	Key string
	// Description replaces the server's instructions in texts for the model.
	Description string
	// Disabled servers are in the snapshot, but never connected.
	Disabled bool
	// Fault is an error in the server's configuration. A server with a Fault is unavailable.
	Fault string
	// PerClient gives each client, or its [caller.Home], its own session. The session ends after SessionIdle without a call (0
	// means 5 minutes), or when the client disconnects; with a home of a principal, it may outlive its clients. A client without an
	// ID uses the shared session; but if the server needs credentials or a login of the caller, such a client gets an error.
	PerClient   bool
	SessionIdle time.Duration
	// PerPrincipal makes all clients of one principal share a session. A new login, or other Credentials, lead to another
	// session. A client without a principal has a session of its own. PerPrincipal requires PerClient.
	PerPrincipal bool
	// Shared, if not empty, identifies how the server starts. Registries with the same [Options.Pool] share a server if the server
	// has an equal Shared in each of them. A server that has asked a client something is not shared with further registries.
	Shared string
	// Credentials says, for headers of requests to the server, where in the caller's request mcpx finds their values. The keys
	// are the names of the headers. Credentials requires PerClient. mcpx reads the catalogue without these headers.
	Credentials map[string]Credential
	// Exchange, if not nil, exchanges a principal's token for a token of the server. The parameter principal is the principal's ID.
	// subject returns the principal's latest token: a JWT or, after a login through auth.front, the issuer's token. authorize adds
	// the server's token to requests; secrets returns the strings that must not appear in messages. Exchange requires PerClient
	// too.
	Exchange func(principal string, subject func() string) (
		authorize func(http.RoundTripper) http.RoundTripper, secrets func() []string)
	// Logins, if not nil, has the logins of principals; each request uses the login of its principal. The shared session then
	// only reads the catalogue, with the login of the config, if it has one. Logins requires PerClient.
	Logins PrincipalLogins
}

// Options are the settings of a registry. Each of them may be zero.
type Options struct {
	// CacheDir is the folder for catalogues; "" means that they are not stored.
	CacheDir string
	// Peers, if not nil, asks other replicas for catalogues.
	Peers Peers
	// Rules become part of each snapshot, so that the rules of a snapshot are always from the same config as its servers. The
	// registry itself does not apply them. Nil means no rules.
	Rules catalog.Rules
	// MaxConcurrency is the maximum number of open calls to all servers together; 0 means no limit. Calls to servers of Pool do
	// not count.
	MaxConcurrency int
	// Queue limits the calls that wait because MaxConcurrency is reached.
	Queue semaphore.Queue
	// SessionLimit limits the sessions that single clients have with one server. The parameter open is their present number.
	// SessionLimit returns an error if the server may not have one more. A nil SessionLimit means no limit.
	SessionLimit func(open int) error
	// ManyClients means that several clients, of both eras, may share the sessions.
	ManyClients bool
	// Pool has the upstreams that other registries of this process use too; nil means none.
	Pool *Pool
	// Again is the name of a server that [Registry.Apply] restarts although its definition has not changed.
	Again string
	// Grace is how long open calls may continue when [Registry.Apply] stops their server; 0 means 5 s. A server of Pool is
	// stopped only if no other registry uses it.
	Grace time.Duration
	// Patience is for a server that has not answered when the registry is closed. If mcpx has waited for the server at least
	// that long, it records that it has tried the server. SDK clients start mcpx briefly to learn its era; such a short run
	// says nothing about the servers.
	Patience time.Duration
	// Logger may be nil, then nothing is logged.
	Logger *slog.Logger
}

// Registry owns the upstreams of its servers, except those of a [Pool]. It is safe for concurrent use.
type Registry struct {
	options Options
	log     *slog.Logger
	cache   *cache

	handler    request.Handler // the middleware chain, which ends with the method send
	snapshot   atomic.Pointer[catalog.Snapshot]
	forOlder   atomic.Pointer[catalog.Snapshot] // for legacy clients; nil if they get the same snapshot
	generation atomic.Uint64                    // numbers the entries, so that an entry differs from earlier ones of the same name
	soleClient
	bounds

	mu        sync.Mutex
	entries   map[string]*entry
	preferred string // set by Prefer; Start starts this server first
	ofClients
	rules catalog.Rules
	listeners
	retired map[*upstream.Upstream]retired // being stopped, but not ended yet

	// saving and publishing are locked before mu. Calls and snapshots never wait for saving: the disk may be slow.
	saving     sync.Mutex // held while a file is written, and by Apply
	publishing sync.Mutex // held while a snapshot is made

	signals
	work
}

// soleClient has the only client of this registry, set by Own. It has none before that, or if several clients share the
// registry.
type soleClient struct {
	owner   atomic.Pointer[caller.Client]
	owned   chan struct{} // closed by the first call of Own
	ownOnce func()        // closes owned
}

// bounds are the limits for all servers together, except those of a Pool.
type bounds struct {
	allCalls *semaphore.Semaphore // limits the open calls
	installs *semaphore.Semaphore // limits the commands that install at the same time
}

// ofClients has the sessions and catalogues of single clients. Unless said otherwise, the keys are [caller.Client.HomeKey]: the
// ID of a client, or the key of its home or principal. Other replicas of mcpx do not see them. mu guards the maps.
type ofClients struct {
	clients map[string]map[sessionKey]*clientSession
	own     map[string]*ownCatalogue
	// lives has, for each home whose sessions end with its connection, the func that stops watching the connection.
	lives map[string]func() bool
	// variants are the catalogues for clients with the same capabilities, by variantKey.
	variants map[string]*variant
	// differing is the total number of entries in own and variants. If it is 0, all clients of one era see the same snapshot.
	differing atomic.Int32
	turn      atomic.Uint32 // distributes the sessions of clients over the instances
}

// listeners are callbacks for new snapshots and for unknown notifications. mu guards them.
type listeners struct {
	onChange  []*func()
	onUnknown []*unknownFunc
}

// signals wake up the goroutines of the registry.
type signals struct {
	needed  chan struct{} // closed by need
	need    func()        // closes needed; further calls do nothing
	dirty   chan struct{} // buffer of one; wakes up the publisher
	unsaved chan struct{} // buffer of one; wakes up the saver
	stop    chan struct{}
	closed  sync.Once
}

// work tracks the goroutines that Close waits for.
type work struct {
	started  bool           // guarded by mu
	ended    bool           // guarded by mu; Close has begun, so no upstream starts any more
	retiring sync.WaitGroup // goroutines that stop or replace upstreams; started with mu held, and only while ended is false
	loops    sync.WaitGroup // goroutines that never wait for the disk
	disk     sync.WaitGroup // goroutines that use the disk
}

// entry is one server with its upstream. Registry.mu guards the fields cached and last, and Registry.saving guards saved. The
// other fields never change.
type entry struct {
	generation uint64
	began      time.Time
	earlier    bool   // the server had a saved record, on disk or at another replica, when the entry was made
	recorded   bool   // WaitListed need not wait: the saved record has Offers, or says that mcpx got no list of tools
	era        string // the era of the server in the saved record; empty if unknown
	server     Server
	upstream   *upstream.Upstream // nil if the server is disabled or misconfigured
	pooled     *pooled            // nil if no other registry can use upstream
	instances  *instances         // nil if the server has only one address or is PerClient; upstream is the first instance
	cached     *record            // the saved record, if there was one; nil once the server has sent all its lists
	last       catalog.Server     // the server as described when its tools last changed; later snapshots reuse these tools
	saved      *record            // what mcpx last tried to write to the cache file
	older      *olderEra          // never nil
}

// New returns a registry for these servers. Its first snapshot has the catalogues from other replicas and from disk.
// [Registry.Start] connects.
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
		bounds:     bounds{semaphore.New(options.MaxConcurrency, options.Queue), semaphore.New(upstream.MaxInstalls, semaphore.Queue{})},
		signals: signals{
			needed: make(chan struct{}), dirty: make(chan struct{}, 1), unsaved: make(chan struct{}, 1), stop: make(chan struct{}),
		},
	}
	r.variants = make(map[string]*variant)
	r.lives = make(map[string]func() bool)
	r.clients, r.own = make(map[string]map[sessionKey]*clientSession), make(map[string]*ownCatalogue)
	r.handler = r.send
	r.ownOnce = sync.OnceFunc(func() { close(r.owned) })
	r.need = sync.OnceFunc(func() { close(r.needed) })
	// newEntry reads the saved record of a server from disk or asks another replica. The first answers to clients wait for that, so
	// it is done for all servers in parallel.
	entries := make([]*entry, len(servers))
	var loading sync.WaitGroup
	for i, server := range servers {
		loading.Go(func() { entries[i] = r.newEntry(server) })
	}
	loading.Wait()
	for _, e := range entries {
		r.entries[e.server.Spec.Name] = e
	}
	r.Refresh()
	return r
}

func (r *Registry) newEntry(server Server) *entry {
	calls := &server.Spec.Concurrency
	calls.Gate, calls.All, calls.Installs = semaphore.New(calls.Max, calls.Queue), r.allCalls, r.installs
	e := &entry{server: server, generation: r.generation.Add(1), began: time.Now()}
	e.older = &olderEra{byEra: make(map[string]catalog.Offers)}
	if server.Disabled || server.Fault != "" {
		return e
	}
	spec := server.Spec
	spec.Introduction.Capabilities = caller.AllCapabilities
	if !server.PerClient || server.PerPrincipal { // otherwise the shared session asks nobody, so it declares all capabilities
		spec.Introduction.Capabilities, spec.Introduction.Owner = caller.SharedCapabilities, r.owner.Load
	}
	if spec.NoQuestions {
		spec.Introduction.Capabilities, spec.Introduction.Owner = "", nil
	}
	if e.cached = r.remembered(server.Key); e.cached != nil {
		e.earlier, e.recorded = true, e.cached.tried || e.cached.Offers != nil
		maps.Copy(e.older.byEra, e.cached.ByEra)
		spec.StartedBefore = !e.cached.tried
		e.era = e.cached.era()
		spec.Era = e.era
	}
	spec.OnChange = r.changed
	spec.OnUnknown = func(method string, params json.RawMessage) { r.unknown(spec.Name, method, params) }
	if e.instances = r.newInstances(e, spec); e.instances != nil {
		e.upstream = e.instances.all[0]
		return e
	}
	if server.Shared != "" && r.options.Pool != nil {
		if e.pooled = r.options.Pool.join(r, server.Shared, spec); e.pooled != nil {
			e.upstream = e.pooled.upstream
			return e
		}
	}
	e.upstream = upstream.New(spec)
	return e
}

// Start begins to connect to all servers and does not wait for them. A lazy server with a saved catalogue stays idle. Further
// calls, and calls after Close, do nothing.
func (r *Registry) Start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started || r.ended {
		return
	}
	r.started = true
	first := r.entries[r.preferred]
	if first != nil {
		first.start(r)
	}
	for _, name := range slices.Sorted(maps.Keys(r.entries)) {
		if e := r.entries[name]; e != first {
			e.start(r)
		}
	}
	r.loops.Go(r.publisher)
	r.loops.Go(r.sweepClients)
	r.disk.Go(r.saver)
	r.disk.Go(r.sweep) // ends after the files were checked, or with Close
}

// Close ends all sessions immediately, except those of a Pool, and waits until they have ended. Processes that still run after
// the given limit are killed. Meanwhile the saver writes the last changes to the cache. Close waits for that too, but not
// longer than the limit, so that a hanging disk does not prevent mcpx from ending. A limit of 0 means no limit.
func (r *Registry) Close(limit time.Duration) {
	r.closed.Do(func() {
		r.mu.Lock()
		r.ended = true
		var all []*upstream.Upstream
		for _, e := range r.entries {
			if e.pooled != nil {
				e.pooled.leave(r)
				continue
			}
			all = append(all, e.upstreams()...)
			if e.older.upstream != nil {
				all = append(all, e.older.upstream)
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
		go func() { // ends after the last write, or with the process if the disk hangs
			r.disk.Wait()
			close(saved)
		}()
		var late <-chan time.Time
		if limit > 0 {
			late = time.After(limit)
		}
		var closing sync.WaitGroup
		for _, u := range all {
			closing.Go(func() { u.Close(limit) })
		}
		closing.Wait()
		r.retiring.Wait()
		r.loops.Wait()
		select {
		case <-saved:
		case <-late:
		}
	})
}

// Snapshot returns the newest snapshot.
func (r *Registry) Snapshot() *catalog.Snapshot { return r.snapshot.Load() }

// changed tells the publisher to publish a new snapshot.
func (r *Registry) changed() { signal(r.dirty) }

// signal sends to c, which has a buffer of one, unless c already has an unread value.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// publisher publishes snapshots until Close. Changes that occur while it makes a snapshot are all in the next one.
func (r *Registry) publisher() {
	for {
		select {
		case <-r.dirty:
			r.Refresh()
			signal(r.unsaved)
		case <-r.stop:
			return
		}
	}
}

// Refresh itself publishes a snapshot of the present state, without the publisher, and calls the listeners.
func (r *Registry) Refresh() {
	r.publishing.Lock()
	defer r.publishing.Unlock()
	r.mu.Lock()
	r.renew()
	listeners := r.onChange
	r.mu.Unlock()
	notify(listeners)
}

// renew stores a snapshot of the present state, and the one for legacy clients. The caller holds publishing and mu.
func (r *Registry) renew() {
	servers := make([]catalog.Server, 0, len(r.entries))
	for name, e := range r.entries {
		servers = append(servers, r.describe(name, e))
	}
	snap := catalog.NewSnapshot(servers)
	snap.Rules = r.rules
	r.snapshot.Store(snap)
	r.forOlder.Store(r.olderSnapshot(snap))
}

func notify(listeners []*func()) {
	for _, f := range listeners {
		(*f)()
	}
}

// Status returns the status of a server's upstream. ok is false if the server is unknown, disabled or misconfigured.
func (r *Registry) Status(name string) (status upstream.Status, ok bool) {
	if e := r.running(name); e != nil {
		return e.status(), true
	}
	return upstream.Status{}, false
}

// PIDs returns the ids of the processes of a server: one for each of its shared sessions (one session for each era), and one for
// each session of a single client. Processes that are being stopped are not among them.
func (r *Registry) PIDs(name string) (pids []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[name]
	if e == nil {
		return nil
	}
	all := slices.Clone(e.upstreams())
	if e.older.upstream != nil {
		all = append(all, e.older.upstream)
	}
	for _, sessions := range r.clients {
		for key, c := range sessions {
			if key.server == name {
				all = append(all, c.upstream)
			}
		}
	}
	for _, u := range all {
		if pid := u.PID(); pid != 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// running returns the entry of a server that has an upstream; nil if the server is unknown, disabled or misconfigured.
func (r *Registry) running(name string) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[name]; e != nil && e.upstream != nil {
		return e
	}
	return nil
}
