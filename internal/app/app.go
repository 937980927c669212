// Package app makes a running mcpx from a config: it wires the parts, applies a
// changed config while they run, and reports their state.
package app

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/proc"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/demo"
	"mcpx/internal/desk/logins"
	"mcpx/internal/executor"
	"mcpx/internal/hosted/authserver"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/hosted/page"
	"mcpx/internal/jq"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/upstream"
	"mcpx/internal/view"
)

const (
	// startAfter delays the start of the upstreams. mcpx answers the client's first
	// requests from the disk, and ten starting processes would slow that down.
	startAfter = 150 * time.Millisecond
	// ownerWithin is how long the start waits for a client over stdio to say who it is.
	ownerWithin = 2 * time.Second
	// closeWithin bounds the time to close all upstreams at the end of mcpx: clients
	// kill it 2 s after they have closed its stdin.
	closeWithin = 500 * time.Millisecond
)

// App has the parts of one mcpx. The caller of New, NewOnce or NewDemo closes it.
type App struct {
	Config   *config.Config // as it was at the start
	Registry *registry.Registry
	Executor *executor.Executor
	View     *view.TwoTools // of the whole catalogue

	views  *views
	stdio  bool // one client: only the view of the config is served
	hosted bool // an endpoint for many clients
	hour   page.Hour
	observers
	edits   chan edit // of the config file, to Follow; nil = there is no file
	log     *slog.Logger
	reaper  *proc.Reaper
	filters *jq.Runner
	logins  *logins.Logins
	limits  *limits.Limits
	// identity says who may connect over HTTP, by auth, and public is whether other machines
	// can reach it.
	identity identity.Verifier
	auth     *config.Auth // in force; read and written by change alone
	public   bool
	tls      *httpd.TLS // nil: none; set by Listen
	// front is the authorization server in force, made of frontWanted.
	front       atomic.Pointer[authserver.Server]
	frontWanted *authserver.Options

	stopStarting context.CancelFunc // nil before start
	loops        sync.WaitGroup
}

func newApp(cfg *config.Config, log *slog.Logger) *App {
	a := &App{Config: cfg, log: log, edits: make(chan edit), reaper: proc.NewReaper(), logins: Logins(log), auth: cfg.Auth, limits: limits.New(limitsOf(cfg))}
	a.identity.SetOptions(a.identities(cfg))
	return a
}

// New wires an App from a config. If only is not empty, all servers but those are disabled.
func New(cfg *config.Config, log *slog.Logger, only ...string) *App {
	a := newApp(cfg, log)
	servers, rules := a.servers(cfg, only)
	a.wire(servers, rules, cacheDir())
	return a
}

// NewStdio is New for one client: servers that its view does not show are disabled. trace gets
// all messages, a line each; nil = no trace.
func NewStdio(cfg *config.Config, log *slog.Logger, trace io.Writer) *App {
	a := newApp(cfg, log)
	a.traceTo(trace)
	a.stdio = true
	servers, rules := a.servers(cfg, a.shown(cfg))
	a.wire(servers, rules, cacheDir())
	return a
}

// NewHTTP is New for an endpoint with many clients, and a trace likewise.
func NewHTTP(cfg *config.Config, log *slog.Logger, trace io.Writer) *App {
	a := newApp(cfg, log)
	a.traceTo(trace)
	a.hosted = true
	servers, rules := a.servers(cfg, nil)
	a.wire(servers, rules, cacheDir())
	return a
}

// shown are the servers that are needed for the views of a config; none means all.
func (a *App) shown(cfg *config.Config) []string {
	part, _ := partOf(cfg, a.Config.View)
	if !a.stdio || part == nil {
		return nil
	}
	return part.Servers
}

// NewOnce wires an App for one command. A call waits until the first attempt to connect
// ends, even beyond exec_wait, as the command has just started the server. Results are
// never cut, as no handle outlives the command.
func NewOnce(cfg *config.Config, log *slog.Logger, only string) *App {
	once := *cfg
	once.ResultTokenLimit = 0
	once.ExecWait = 24 * time.Hour
	once.Servers = slices.Clone(cfg.Servers) // a person makes this call, and need not confirm it
	for i := range once.Servers {
		once.Servers[i].Confirm = "off"
	}
	if only == "" || only == executor.Builtin { // its tools read from all servers
		return New(&once, log)
	}
	return New(&once, log, only)
}

// NewDemo wires an App of the sample servers.
func NewDemo(log *slog.Logger) (*App, error) {
	cfg, err := config.Parse("demo", []byte(`{"mcpServers":{}}`), config.Options{})
	if err != nil {
		return nil, err
	}
	cfg.Warnings = nil // the warning that no servers are defined
	a := newApp(cfg, log)
	a.edits = nil
	var servers []registry.Server
	for _, sample := range demo.Servers() {
		servers = append(servers, registry.Server{
			Description: sample.Description,
			Spec:        upstream.Spec{Name: sample.Name, Type: upstream.InProcess, Serve: sample.Serve, Logger: log},
		})
	}
	a.wire(servers, &policy.Rules{}, "")
	return a, nil
}

func (a *App) wire(servers []registry.Server, rules *policy.Rules, cache string) {
	a.filters = jq.New(jq.Limits{}, a.reaper)
	options := registryOptions(a.Config, rules)
	options.CacheDir, options.Logger, options.SessionLimit = cache, a.log, a.limits.ServerSession
	a.Registry = registry.New(servers, options)
	calls := a.executorOptions(a.Config)
	calls.Journal, calls.Tracing = &a.journal, a.tracing()
	a.Executor = executor.New(a.Registry, calls)
	a.observe()
	a.Registry.Use(a.Executor.Chain(a.admit, a.limits.Limit)...)
	two, _ := a.viewOptions(a.Config, config.ViewTwoTools)
	a.View = view.NewTwoTools(a.Registry, a.Executor, two)
	a.views = &views{app: a, config: a.Config, open: make(map[string]*openView)}
}

// start connects all servers in the background: when a request needs one, when after has passed,
// or startAfter after the client over stdio has named itself, as servers see its capabilities.
// Its goroutine ends with Close.
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
		changes.look(a.Registry.Snapshot()) // the catalogue on disk, of an earlier run
		a.Registry.OnChange(func() { changes.look(a.Registry.Snapshot()) })
		a.Registry.Start()
		a.loops.Go(func() { a.followLogins(ctx) })
		a.settle(ctx)
	})
}

// Close ends all sessions, and then the reaper.
func (a *App) Close() {
	if a.stopStarting != nil {
		a.stopStarting()
	}
	a.loops.Wait()
	a.identity.SetOptions(nil)
	_ = a.changeFront(nil) // nothing can fail
	a.views.close()
	a.View.Close()
	a.Registry.Close(closeWithin)
	a.Executor.Close()
	a.filters.Close()
	a.logins.Close(2 * closeWithin) // a renewed token that is not kept costs the login
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
