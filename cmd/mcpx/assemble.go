package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"mcpx/internal/catalog"
	"mcpx/internal/config"
	"mcpx/internal/demo"
	"mcpx/internal/executor"
	"mcpx/internal/front"
	"mcpx/internal/jq"
	"mcpx/internal/policy"
	"mcpx/internal/proc"
	"mcpx/internal/registry"
	"mcpx/internal/upstream"
)

// app is the parts, wired together. start connects; close ends everything.
type app struct {
	config   *config.Config // as it was at the start
	log      *slog.Logger
	reaper   *proc.Reaper
	registry *registry.Registry
	executor *executor.Executor
	front    *front.Front
	filters  *jq.Runner

	stopStarting context.CancelFunc // nil before start
	loops        sync.WaitGroup
}

// loadConfig finds and reads the config file.
func (c *cli) loadConfig(s streams) (*config.Config, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		folder = ""
	}
	path, err := config.Find(c.Config, s.getenv, s.terminal, folder)
	if err != nil {
		return nil, err
	}
	return readConfig(path, s)
}

func readConfig(path string, s streams) (*config.Config, error) {
	self, err := os.Executable()
	if err != nil {
		self = ""
	}
	return config.Load(path, config.Options{Getenv: s.getenv, Executable: self})
}

// logger is the logger of a command: the flag wins over the config. level is
// for commands that are quiet unless asked.
func (c *cli) logger(s streams, cfg *config.Config, quiet bool) *slog.Logger {
	level := cfg.LogLevel
	if quiet {
		level = "error"
	}
	if c.LogLevel != "" {
		level = c.LogLevel
	}
	return newLogger(s.err, level, cfg.LogFormat)
}

// assemble wires an app from a config. only, if not empty, names the one server
// that is to be connected; the others are left alone.
func assemble(cfg *config.Config, log *slog.Logger, only string) *app {
	a := &app{config: cfg, log: log, reaper: proc.NewReaper()}
	servers, rules := a.servers(cfg, only)
	a.wire(servers, rules, cacheDir())
	return a
}

// assembleOnce wires an app for one command. Its servers have only just been
// started: a first attempt is waited for to its end, whatever exec_wait says. And
// nothing is cut, since no handle outlives the command.
func assembleOnce(cfg *config.Config, log *slog.Logger, only string) *app {
	once := *cfg
	once.ResultTokenLimit = 0
	for _, s := range cfg.Servers {
		if only == "" || s.Name == only {
			once.ExecWait = max(once.ExecWait, s.ConnectTimeout+time.Second)
		}
	}
	return assemble(&once, log, only)
}

// assembleDemo wires an app of the sample servers.
func assembleDemo(log *slog.Logger) (*app, error) {
	cfg, err := config.Parse("demo", []byte(`{"mcpServers":{}}`), config.Options{})
	if err != nil {
		return nil, err
	}
	cfg.Warnings = nil // that no servers are defined is meant here
	a := &app{config: cfg, log: log, reaper: proc.NewReaper()}
	var servers []registry.Server
	for _, sample := range demo.Servers() {
		servers = append(servers, registry.Server{
			Description: sample.Description,
			Spec:        upstream.Spec{Name: sample.Name, Type: upstream.InProcess, Serve: sample.Serve, Logger: log},
		})
	}
	a.wire(servers, policy.Rules{}, "")
	return a, nil
}

func (a *app) wire(servers []registry.Server, rules policy.Rules, cache string) {
	a.filters = jq.New(jq.Limits{})
	options := registryOptions(a.config, rules)
	options.CacheDir, options.Logger = cache, a.log
	a.registry = registry.New(servers, options)
	a.executor = executor.New(a.registry, a.executorOptions(a.config))
	a.front = front.New(a.registry, a.executor, a.frontOptions(a.config))
}

// startAfter is how long the upstreams wait for the client's first questions,
// which are answered from the disk: starting ten processes at once would take
// the processor away from them.
const startAfter = 150 * time.Millisecond

// start connects all servers, in the background: with the first need of one,
// and soon in any case. It ends with close.
func (a *app) start() {
	ctx, cancel := context.WithCancel(context.Background())
	a.stopStarting = cancel
	a.loops.Go(func() {
		timer := time.NewTimer(startAfter)
		defer timer.Stop()
		select {
		case <-a.front.Needed():
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		a.registry.Start()
		a.settle(ctx)
	})
}

// close ends all sessions within that time (0 = at their leisure), and then the
// reaper, which has nothing left to do.
func (a *app) close(within time.Duration) {
	if a.stopStarting != nil {
		a.stopStarting()
	}
	a.loops.Wait()
	a.front.Close()
	a.registry.Close(within)
	a.filters.Close()
	_ = a.reaper.Close()
}

func cacheDir() string {
	folder, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(folder, "mcpx", "catalogue")
}

// servers makes the registry's servers and the rules out of a config.
func (a *app) servers(cfg *config.Config, only string) ([]registry.Server, policy.Rules) {
	rules := policy.Rules{Servers: make(map[string]policy.ServerRules), Disabled: cfg.DisabledTools}
	servers := make([]registry.Server, 0, len(cfg.Servers))
	for _, s := range cfg.Servers {
		rules.Servers[s.Name] = policy.ServerRules{Allow: s.Tools.Allow, Deny: s.Tools.Deny, ReadOnly: s.ReadOnly}
		server := a.server(cfg, s)
		if only != "" && s.Name != only {
			server.Disabled = true
		}
		servers = append(servers, server)
	}
	return servers, rules
}

func (a *app) server(cfg *config.Config, s config.Server) registry.Server {
	env := pairs(s.Env)
	headers := pairs(s.Headers)
	out := registry.Server{
		Spec:        a.spec(cfg, s),
		Key:         cacheKey(s),
		Description: s.Description,
		Disabled:    !s.Enabled,
		Fault:       s.Fault,
		PerClient:   s.Session == "per_client",
		SessionIdle: s.SessionIdle,
	}
	if s.Type == config.WebSocket && out.Fault == "" {
		out.Fault = "websocket servers are not supported yet; use stdio, http or sse"
	}
	// What the session depends on. All else takes effect on a running server.
	definition, _ := json.Marshal([]any{
		s.Type, s.Command, s.Args, env, s.Cwd, s.URL, headers, s.Framing,
		s.Enabled, s.Fault, s.Session, s.ConnectTimeout, cfg.HealthCheck, cfg.MaxMessageBytes,
	})
	out.Definition = registry.Key(string(definition))
	return out
}

// cacheKey names the catalogue of a server on disk, by what decides which tools it
// has. Credentials are left out: they are rotated, and the next start would know
// nothing each time. So two config files that differ in a credential alone share
// one catalogue, and may see other tools. That lasts until the server itself is
// heard, moments after the start, when the catalogue is kept anew; within one file
// the name tells two accounts of one server apart.
func cacheKey(s config.Server) string {
	parts := append([]string{s.Name, s.Type, s.Command, s.Cwd, s.URL}, s.Args...)
	parts = append(append(parts, pairs(s.Env)...), pairs(s.Headers)...)
	for i := range parts {
		for _, credential := range s.Credentials {
			parts[i] = strings.ReplaceAll(parts[i], credential, "\x00")
		}
	}
	return registry.Key(parts...)
}

func (a *app) spec(cfg *config.Config, s config.Server) upstream.Spec {
	spec := upstream.Spec{
		Name: s.Name, Type: s.Type,
		Command: s.Command, Args: s.Args, Cwd: s.Cwd,
		ContentLength: s.Framing == "content-length", NewlineOnly: s.Framing == "newline",
		URL: s.URL, Headers: s.Headers,
		ClientName: "mcpx", ClientVersion: version(),
		ConnectTimeout: s.ConnectTimeout,
		MaxMessage:     cfg.MaxMessageBytes, MaxConcurrency: s.MaxConcurrency,
		Secrets: s.Secrets, Reaper: a.reaper, Logger: a.log,
	}
	if s.Type == config.Stdio {
		spec.Env = proc.Environment(os.Environ(), s.Env)
	}
	if cfg.HealthCheck.Enabled {
		spec.Health = upstream.Health{
			Interval: cfg.HealthCheck.Interval, Timeout: cfg.HealthCheck.Timeout,
			Threshold: cfg.HealthCheck.FailureThreshold,
		}
	}
	return spec
}

// pairs are the members of a map in a fixed order.
func pairs(m map[string]string) []string {
	list := make([]string, 0, len(m))
	for name, value := range m {
		list = append(list, name+"="+value)
	}
	sort.Strings(list)
	return list
}

// logWarnings says what a config file has that does nothing, or is odd.
func (a *app) logWarnings(cfg *config.Config) {
	for _, warning := range cfg.Warnings {
		a.log.Warn("config", "warning", warning)
	}
	for _, fault := range cfg.ServerFaults() {
		a.log.Warn("config", "fault", fault.String())
	}
}

// states counts servers by state, for people.
func states(snap *catalog.Snapshot) string {
	counts := make(map[catalog.State]int)
	for i := range snap.Servers {
		counts[snap.Servers[i].State]++
	}
	var parts []string
	for _, state := range []catalog.State{catalog.Ready, catalog.Degraded, catalog.Connecting, catalog.Unavailable, catalog.Disabled} {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	return strings.Join(parts, ", ")
}
