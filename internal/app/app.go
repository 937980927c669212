// Package app makes a running mcpx from a config: it wires the parts, applies a
// changed config while they run, and reports their state.
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
	"mcpx/internal/base/memory"
	"mcpx/internal/base/proc"
	"mcpx/internal/desk/config"
	"mcpx/internal/executor"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/hosted/page"
	"mcpx/internal/jq"
	"mcpx/internal/registry"
	"mcpx/internal/view"
)

const (
	// startAfter delays the start of the upstreams. mcpx answers the client's first requests from the cache on
	// disk, and starting processes would slow that down.
	startAfter = 150 * time.Millisecond
	// ownerWithin is how long the start waits for a client over stdio to name itself.
	ownerWithin = 2 * time.Second
	// closeWithin bounds the closing of all upstreams: clients kill mcpx 2 s after they have closed its stdin.
	closeWithin = 500 * time.Millisecond
)

// Options are what an App is made of.
type Options struct {
	// Config is nil for the profile Demo.
	Config  *config.Config
	Profile Profile
	Log     *slog.Logger
	// Only, if not empty, names the servers that are needed: all others are disabled.
	Only []string
	// Trace gets all messages, one on each line; nil = no trace.
	Trace io.Writer

	state *clientState // nil = a new one in memory
}

// App has the parts of one mcpx. The caller of New closes it.
type App struct {
	Config   *config.Config // as it was at the start
	Registry *registry.Registry
	Executor *executor.Executor
	View     *view.TwoTools // of the whole catalogue

	// current is the Runtime in force. The other packages read their settings from it each time they use them. Only swap
	// replaces it.
	current atomic.Pointer[Runtime]
	builder
	views *views
	hour  page.Hour
	observers
	edits    chan edit // of the config file, handled by Follow; nil = there is no file
	reloaded Reloaded  // by the last reload; for the goroutine of Follow
	limits   *limits.Limits
	identity *identity.Verifier // of clients over HTTP
	tls      *httpd.TLS         // nil: none; set by Listen

	stopStarting context.CancelFunc // nil before start is called
	loops        sync.WaitGroup
}

// MemoryOf returns the soft limit for the memory of mcpx with a config, in bytes; 0 = none.
func MemoryOf(cfg *config.Config) int64 { return cmp.Or(cfg.Memory, memory.Default()) }

// filterMemory returns the limit for the memory of each helper that runs filters, in bytes: part of what mcpx may use, as helpers
// are in the same container. 0 = jq's default.
func filterMemory(all int64) int64 {
	if all == 0 {
		return 0
	}
	return min(max(all/8, 64<<20), 256<<20)
}

// OwnMemory returns the soft limit for this process alone: without a helper at its limit. A principal has one helper at a time.
// 0 = none.
func OwnMemory(cfg *config.Config) int64 {
	all := MemoryOf(cfg)
	return max(all/2, all-filterMemory(all))
}

// New makes an App. It starts nothing.
func New(o Options) (*App, error) {
	cfg, err := o.Profile.config(o.Config)
	if err != nil {
		return nil, err
	}
	a := &App{Config: cfg}
	if o.state == nil {
		o.state = newClientState(o.Log, MemoryOf(cfg))
	}
	a.builder = builder{
		profile: o.Profile, only: o.Profile.servers(o.Only), view: cfg.View, path: cfg.HTTPPath, log: o.Log,
		reaper: proc.NewReaper(), logins: Logins(o.Log), state: o.state, trace: a.traceServer,
	}
	a.filters = jq.New(jq.Limits{Memory: filterMemory(MemoryOf(cfg))}, a.reaper)
	a.traceTo(o.Trace)
	first, err := a.build(cfg, nil)
	if err != nil {
		return nil, err
	}
	if first.authServer != nil {
		a.state.secret = first.authServer.of.Secret
	}
	a.current.Store(first)
	a.wire(first)
	return a, nil
}

// wire makes the registry, the executor and the rest, which follow the Runtime in force.
func (a *App) wire(first *Runtime) {
	a.limits = limits.Following(func() *limits.Options { return &a.current.Load().limits }, a.state.counters)
	a.identity = identity.NewVerifier(func() *identity.State { return a.current.Load().identity })
	options := first.registry
	options.Logger, options.SessionLimit, options.ManyClients = a.log, a.limits.ServerSession, a.profile.manyClients
	if !a.profile.samples {
		a.edits, options.CacheDir = make(chan edit), cacheDir()
	}
	a.Registry = registry.New(first.servers, options)
	a.Executor = executor.New(a.Registry, executor.Options{
		Current: func() *executor.Settings { return a.current.Load().calls },
		Journal: &a.journal, Tracing: a.tracing(), Results: a.state.results, Secret: a.state.secret, Logger: a.log,
	})
	a.observe()
	a.Registry.Use(a.Executor.Chain(a.admit, a.limits.Limit)...)
	a.View = view.NewTwoTools(a.Registry, a.Executor, a.viewOf(config.ViewTwoTools))
	a.views = &views{app: a, open: make(map[string]*openView)}
}

// viewOf returns the options of a view that follows the Runtime in force.
func (a *App) viewOf(name string) view.Options {
	return view.Options{Current: func() *view.Settings { return a.current.Load().settings(name) }, Logger: a.log}
}

// start connects all servers in the background: as soon as a request needs one, or after the given time, or
// startAfter after the client over stdio has named itself (servers see that client's capabilities). Its goroutine
// ends with Close.
func (a *App) start(after time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	a.stopStarting = cancel
	a.loops.Go(func() {
		timer := time.NewTimer(after)
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
		changes.look(a.Registry.Snapshot()) // the cached catalogue of an earlier run
		a.Registry.OnChange(func() { changes.look(a.Registry.Snapshot()) })
		a.Registry.Start()
		a.loops.Go(func() { a.followLogins(ctx) })
		a.settle(ctx)
	})
}

// Close ends all sessions, and the reaper last.
func (a *App) Close() {
	if a.stopStarting != nil {
		a.stopStarting()
	}
	a.loops.Wait()
	a.views.close()
	a.View.Close()
	a.Registry.Close(closeWithin) // from here on no reload swaps any more
	a.current.Load().end(nil)
	a.Executor.Close()
	a.filters.Close()
	a.logins.Close(2 * closeWithin) // losing a renewed token would lose the login
	_ = a.reaper.Close()
}

func cacheDir() string {
	folder, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(folder, "mcpx", "catalogue")
}

// LogWarnings logs the warnings of a config, and the faults of its servers.
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

// settleAfter is the time for the work after the last server: texts and cache files.
const settleAfter = time.Second

// settle returns the memory that only the start needed to the system, once every server was tried. mcpx and its reaper
// with 10 servers and 500 tools then use 17 MB; 32 with the pages of the executable in memory, 43 if the reaper keeps
// them too, 49 without the garbage collection.
func (a *App) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	a.Registry.WaitTried(ctx)
	timer := time.NewTimer(settleAfter)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	debug.FreeOSMemory()
	proc.DropFilePages()
}
