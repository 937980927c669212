// Package app builds a running mcpx from a config: it connects the parts, applies a changed config while they run, and reports
// their state.
package app

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/delay"
	"mcpx/internal/base/memory"
	"mcpx/internal/base/proc"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
	"mcpx/internal/desk/share"
	"mcpx/internal/executor"
	"mcpx/internal/hosted/dial"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/hosted/page"
	"mcpx/internal/jq"
	"mcpx/internal/learned"
	"mcpx/internal/programs"
	"mcpx/internal/registry"
	"mcpx/internal/view"
)

const (
	// startAfter is how long mcpx delays the start of its servers, unless a request needs one earlier. Over stdio this time
	// begins when the client has sent its name. In this time mcpx answers the client's first requests from the cache on disk;
	// starting processes would slow that down.
	startAfter = 150 * time.Millisecond
	// ownerWithin is how long mcpx waits, at most, for a client over stdio to send its name before it starts the servers.
	ownerWithin = 2 * time.Second
	// closeWithin is how long closing all servers may take. It is short, because clients kill mcpx 2 s after they have closed
	// its stdin.
	closeWithin = 500 * time.Millisecond
)

// Options say how New makes an App.
type Options struct {
	// Config is nil for the profile Demo.
	Config  *config.Config
	Profile Profile
	Log     *slog.Logger
	// Only has the names of the servers that are needed. New disables all other servers of the config. If Only is empty, all
	// servers are needed. For the profiles Once and Look, all servers are also needed if Only contains "" or mcpx. For the
	// profile Stdio, if the view shows only some servers, these are needed, whatever Only says.
	Only []string
	// Lines keeps the log that the status page shows; nil means that the status page shows no log.
	Lines *Lines
	// Trace receives the messages of clients and servers without secrets, one per line; long messages are cut. Messages of servers
	// in this process are left out. nil means no trace.
	Trace io.Writer
	// Locals are servers that run in this process, in addition to the servers of the config.
	Locals []Local
	// Origin is the process on whose behalf servers are started; the zero value means this process.
	Origin Origin

	state *clientState // nil means that New creates one
}

// dialling has what an App needs for two things. Servers may dial in: they open the connection to mcpx. And with the command mcpx
// dial, this mcpx dials in to a hosted mcpx, to which it then offers its servers.
type dialling struct {
	// offered is the name and version of the single server that mcpx dial offers. It is empty for other commands, and if mcpx
	// dial offers several servers.
	offered offered
	// dialled has the servers that have dialled in. New sets it. undialled is true if the list of these servers has changed, and no
	// rebuild of the Runtime has begun since then.
	dialled   *dial.Hub
	undialled atomic.Bool
	// agents serves the HTTP paths of the older system that mcpx can replace (config key dial.compat).
	agents *agents
}

// Origin describes another process on whose behalf an App starts servers. The daemon, which serves the sessions and commands of
// other processes, makes an App with an Origin for each of them. The servers start as if the other process had started them. The
// zero Origin means this process.
type Origin struct {
	Folder  string
	Environ []string
	Umask   *int
	// Reaper starts the servers. Except on Windows, it also starts a helper process that ends them if mcpx is killed. The App does
	// not close this Reaper. nil means that the App makes a Reaper of its own, and closes that one.
	Reaper *proc.Reaper
	// Pool has the servers that sessions of the daemon share; nil means that the App shares no servers.
	Pool *registry.Pool
	// History has what the status page shows about the calls of the App; nil means that the App makes a CallHistory of its own.
	// Sessions returns the Apps of the page and of all sessions and commands in this process: the page shows the servers of all of
	// them. Sessions is nil except for the App of the page in the daemon.
	History  *CallHistory
	Sessions func() []*App
}

// App is one running mcpx. The caller of New must end it with Close, or with a method that says that it closes the App, such as
// ServeHTTP.
type App struct {
	Config   *config.Config // the config at the start; the field current has the config in use
	Registry *registry.Registry
	Executor *executor.Executor
	View     *view.TwoTools // the view with the tools inspect and exec and the whole catalogue

	// current is the Runtime that is now in use. The other packages read most settings from it each time they use them. Only
	// the method swap replaces the Runtime.
	current atomic.Pointer[Runtime]
	builder
	views *views
	dialling
	reloading
	history *CallHistory
	lines   *Lines // the log that the status page shows; nil if it shows none
	observers
	pageEnds []context.CancelFunc // one for each page; each ends what viewers of the page have begun, such as logins
	limits   *limits.Limits
	learned  *learned.Store
	identity *identity.Verifier // authenticates clients over HTTP
	tls      *httpd.TLS         // nil without TLS; set by Listen

	readyState

	stopStarting context.CancelFunc // nil before start is called
	loops        sync.WaitGroup
}

// reloading has what an App needs to apply a changed config.
type reloading struct {
	// applying is held while a changed Runtime is built and becomes the current one, and while a server is restarted or
	// stopped.
	applying sync.Mutex
	source   atomic.Pointer[setup.ConfigFile] // the config file; nil until Follow is called
	edits    chan edit                        // edits of the config and lock file, for Follow; nil for Demo and Embedded
	reloaded Reloaded                         // what the last reload changed; used by the goroutine of Follow only
}

// memoryOf returns the soft limit for the memory of mcpx, in bytes: the limit in the config or, if it has none, 80 % of the
// container's limit. 0 means no limit.
func memoryOf(cfg *config.Config) int64 { return cmp.Or(cfg.Memory, memory.Default()) }

// filterMemory returns the memory limit for each helper process that runs filters, in bytes; 0 means the default of package jq.
// total is the limit for mcpx as a whole. Helpers run in the same container as mcpx, so their memory is a part of total.
func filterMemory(total int64) int64 {
	if total == 0 {
		return 0
	}
	return min(max(total/8, 64<<20), 256<<20)
}

// OwnMemory returns the soft memory limit for this process alone, in bytes; 0 means no limit. It is the limit for mcpx as a whole
// minus the limit for one helper process that runs filters, but at least half of the limit for mcpx as a whole. Only one helper is
// subtracted, because a second one runs only while two principals use filters at the same time.
func OwnMemory(cfg *config.Config) int64 {
	all := memoryOf(cfg)
	return max(all/2, all-filterMemory(all))
}

// New returns an App. It starts no servers. If the config names a cluster and mcpx serves over HTTP, New joins the cluster.
func New(o Options) (*App, error) {
	cfg, err := o.Profile.config(o.Config)
	if err != nil {
		return nil, err
	}
	if err := checkLocals(cfg, o.Locals); err != nil {
		return nil, err
	}
	a := &App{Config: cfg, readyState: readyState{began: time.Now()}, lines: o.Lines, history: o.Origin.History}
	if a.history == nil {
		a.history = &CallHistory{}
	}
	if err := o.keepState(cfg); err != nil {
		return nil, err
	}
	a.builder = builder{
		profile: o.Profile, locals: o.Locals, only: o.Profile.servers(o.Only), view: cfg.View, path: cfg.HTTPPath, log: o.Log,
		reaper: o.Origin.Reaper, origin: o.Origin,
		session: share.NewSession(o.Origin.Environ, o.Origin.Folder), logins: Logins(o.Log), state: o.state, trace: a.traceServer,
		auditor: &auditor{},
	}
	a.accounts, a.link = new(accounts), a.linkFor
	a.browsers = &page.Browsers{Sessions: o.state.browsers, Issuer: a.signsIn}
	if a.reaper == nil {
		a.reaper = proc.NewReaper()
	}
	a.filters = jq.New(jq.Limits{Memory: filterMemory(memoryOf(cfg))}, a.reaper)
	a.runner = programs.New(cfg.Programs.Memory, a.reaper)
	a.traceTo(o.Trace)
	a.dialled = a.newHub()
	a.dialledIn = a.dialled.Servers
	a.agents = &agents{app: a, clients: make(map[string]int)}
	first, err := a.build(cfg, nil)
	if err != nil {
		a.state.close()
		return nil, err
	}
	if first.authServer != nil && a.state.cluster == nil {
		a.state.secrets = first.authServer.of.Secrets
	}
	a.current.Store(first)
	a.wire(first)
	a.followLastLogins()
	if c := a.state.cluster; c != nil {
		a.state.approvals.follow(c, a.dialled.Refresh)
		if len(cfg.Cluster.Keys) > 1 {
			if err := a.state.approvals.renew(context.Background(), c); err != nil {
				a.log.Warn("approvals of servers that dialled in may need the older keys of the cluster until the next start", "err", err)
			}
		}
		a.dialled.Share()
		a.clusterAway = func() bool { return !c.Connected() }
		c.Answer(askCatalogue, func(_ context.Context, _ string, key []byte, write func([]byte) error) error {
			return write(a.Registry.Saved(string(key)))
		})
	}
	return a, nil
}

// keepState creates the clientState, unless the caller gave one. If Profile.sealed is false, the state ends with this process. If
// it is true, clients can go on with their sessions later. With a cluster in the config, they can do so at any replica, because the
// shared state is in the cluster. Without a cluster, they can do so after a restart of mcpx (see seal).
func (o *Options) keepState(cfg *config.Config) error {
	if o.state != nil {
		return nil
	}
	o.state = newClientState(memoryOf(cfg))
	switch {
	case o.Profile.sealed && cfg.Cluster != nil:
		return o.state.join(cfg.Cluster, o.Log)
	case o.Profile.sealed:
		o.state.seal(o.Log)
	}
	return nil
}

// wire creates the registry, the executor and the other parts. first is the Runtime at the start. After a reload, most parts read
// their settings from the current Runtime; the registry gets its settings from the method swap.
func (a *App) wire(first *Runtime) {
	a.limits = limits.Following(func() *conf.Limits { return &a.current.Load().limits }, a.state.counters)
	a.identity = identity.NewVerifier(func() *identity.State { return a.current.Load().identity })
	options := first.registry
	options.Logger, options.SessionLimit, options.ManyClients = a.log, a.limits.ServerSession, a.profile.manyClients
	options.Peers, options.Pool = a.state.catalogues, a.origin.Pool
	if !a.profile.samples && first.config.Path != "" {
		options.CacheDir = cacheDir()
	}
	if !a.profile.samples && !a.profile.embedded {
		a.edits = make(chan edit)
	}
	a.learned = learned.New(options.CacheDir, a.log)
	a.Registry = registry.New(first.servers, options)
	a.Executor = executor.New(a.Registry, executor.Options{
		Current:      func() *executor.Settings { return a.current.Load().calls },
		LearnOptions: executor.LearnOptions{Learned: a.learned}, Journal: &a.journal, Tracing: a.tracing(), Results: a.state.results,
		TaskIDs: executor.TaskIDs{Secrets: a.state.secrets, Replica: a.replica()}, Logger: a.log,
	})
	a.observe()
	a.Registry.Use(a.Executor.Chain(a.admit, a.limits.Limit)...)
	a.View = view.NewTwoTools(a.Registry, a.Executor, a.viewOf(config.ViewTwoTools))
	a.views = newViews(a)
	a.answerPeers()
}

// viewOf returns the options of the view called name, which reads its settings from the current Runtime.
func (a *App) viewOf(name string) view.Options {
	return view.Options{Current: func() *view.Settings { return a.current.Load().settings(name) }, Logger: a.log}
}

// start connects to the servers in the background, except to servers that start only when they are needed. Before that, it waits
// until a request needs a server, but not longer than delay. Over stdio, the client may send its name and capabilities meanwhile,
// which mcpx passes on to servers. When the client has sent them, start waits only startAfter longer. The goroutine of start ends
// with Close.
func (a *App) start(delay time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	a.stopStarting = cancel
	a.loops.Go(func() {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		owned := a.Registry.Owned()
		for waiting := true; waiting; {
			select {
			case <-owned:
				owned = nil
				timer.Reset(startAfter)
			case <-a.Registry.Needed():
				waiting = false
			case <-timer.C:
				waiting = false
			case <-ctx.Done():
				return
			}
		}
		changes := &changedTools{log: a.log, seen: make(map[string][]catalog.Tool), told: make(map[string][]string)}
		// This snapshot is from the cache on disk. So the comparison with the next one shows what has changed since the last run.
		changes.look(a.Registry.Snapshot())
		a.Registry.OnChange(func() { changes.look(a.Registry.Snapshot()) })
		a.Registry.Start()
		a.loops.Go(func() { a.followLogins(ctx) })
		a.settle(ctx)
	})
}

// Close ends all sessions, then the servers. Finally it ends the reaper, a process that ends the child processes if mcpx is killed.
// A reaper that came with Options.Origin is not ended.
func (a *App) Close() {
	if a.stopStarting != nil {
		a.stopStarting()
	}
	for _, end := range a.pageEnds {
		end()
	}
	a.loops.Wait()
	a.agents.close()
	a.dialled.Close()
	// Renewed tokens may be saved in the cluster. So this comes before state.close, which ends the connection to the cluster.
	a.accounts.close(2 * closeWithin)
	a.state.close() // before the views are closed, so that other replicas forward nothing to them
	a.views.close()
	a.View.Close()
	a.Registry.Close(closeWithin) // after this, reloads have no effect
	a.current.Load().end(nil)
	a.runner.Close()
	a.Executor.Close()
	a.learned.Close(closeWithin)
	a.book.Close(closeWithin)
	a.filters.Close()
	a.logins.Close(2 * closeWithin) // waits until renewed tokens are saved, because a login is lost without its new token
	if a.origin.Reaper == nil {
		_ = a.reaper.Close()
	}
}

func cacheDir() string {
	folder, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(folder, "mcpx", "catalogue")
}

// LogWarnings logs the warnings of a config, the commands that gave it values, and the faults of its servers.
func (a *App) LogWarnings(cfg *config.Config) {
	for _, warning := range slices.Concat(cfg.Warnings, UnknownInRights(cfg)) {
		a.log.Warn("config", "warning", warning)
	}
	if len(cfg.Commands) > 0 {
		a.log.Info("config: these commands gave values", "commands", cfg.Commands)
	}
	for _, fault := range cfg.ServerFaults() {
		a.log.Warn("config", "fault", fault.String())
	}
}

// settleAfter is the time for the work that follows the start of the last server, such as writing cache files.
const settleAfter = time.Second

// settle waits until mcpx has tried to connect to every server. Then it returns unused memory to the operating system, because
// the start needs much more memory than the work after it. With 10 servers and 500 tools, mcpx and its reaper use 17 MB after
// settle, and 49 MB without it. If the attempts take longer than a minute, settle does nothing.
func (a *App) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	a.Registry.WaitTried(ctx)
	if !delay.Sleep(ctx, settleAfter) {
		return
	}
	debug.FreeOSMemory()
	proc.DropFilePages()
}
