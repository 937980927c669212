// Package config reads the config file: the servers that people already have in
// the files of their MCP clients, and the settings of mcpx itself.
//
// There are two kinds of faults. A fault of structure (a wrong type, an unknown
// value, a key that is nearly one of ours) makes the whole file unusable, and
// all of them are reported at once, as [Faults]. A fault inside one server (an
// unset variable, a bad URL, a missing command) is kept in [Server.Fault]: that
// server is unavailable and the others work.
package config

import (
	"log/slog"
	"math"
	"time"

	"mcpx/internal/base/conf"
)

// Config is one config file, read, with the defaults applied. It is never
// written to after [Parse] returned it. A field without a comment is the key of that name,
// and its row says what it means.
type Config struct {
	// Path is the file, as it was given.
	Path string
	// Servers are sorted by name. Disabled and faulty ones are among them.
	Servers []Server

	ForClients
	ForCalls
	ForServers
	OverHTTP
	ToLog

	// Secrets are the values to be struck out that belong to no server.
	Secrets []string `json:"-"`
	// Commands are the programs that were run for values of servers, each once, sorted.
	Commands []string
	// Warnings are for the log: what was ignored or skipped, and where. They hold
	// no values.
	Warnings []string
}

// ForClients is what clients and their models are shown.
type ForClients struct {
	View                                     string
	Groups                                   []Group // sorted by name
	Clients                                  []conf.ClientRule
	CatalogueTokenBudget, CatalogueCharLimit int
	SchemaCompression                        bool
	MaxDescriptionLen                        int
	ShortArgumentNames, ReadDoor, Apps       bool
	Separator, Prefix                        string
	Compress, Resources, Prompts             bool
	StructuredContent                        conf.StructuredPolicy
	StartupWait                              time.Duration
}

// ForCalls is for calls and their results.
type ForCalls struct {
	ResultTokenLimit, ResultPreviewTokens int
	ToonCompression                       bool
	ExecWait                              time.Duration
	DisabledTools                         []string
}

// ForServers is for all servers together.
type ForServers struct {
	MaxMessageBytes int64
	MaxConcurrency  int
	ShutdownGrace   time.Duration
	HealthCheck     bool
	Health          conf.Health
}

// OverHTTP is for mcpx over HTTP.
type OverHTTP struct {
	Auth           *Auth     // nil = everybody who reaches the address may connect
	TLS            *conf.TLS // nil = none
	Limits         conf.Limits
	SessionTimeout time.Duration
	SSE, UI        bool
	API            *bool  // nil = the file does not say it
	Audit          *Audit // nil = no trail is kept
	Telemetry      Telemetry
}

// ToLog is for the log.
type ToLog struct{ LogLevel, LogFormat, LogFile string }

// The values of [Config.View]; the last two go before the name of a server or group.
const (
	ViewTwoTools = "two_tools"
	ViewTools    = "tools"
	ViewServer   = "servers/"
	ViewGroup    = "groups/"
)

// Group is a named part of the catalogue.
type Group struct {
	Name string
	// Servers are the names of its servers as they are served; nil = all.
	Servers []string
	// Tools are globs over SERVER.TOOL.
	Tools    ToolFilter
	ReadOnly bool
	Confirm  conf.Confirm
	View     string
	// CatalogueTokenBudget is 0 where the one of the file is used.
	CatalogueTokenBudget int
}

// NoLimit is more than anything has: it lifts the bound that is known of a client.
const NoLimit = math.MaxInt32

// The kinds of connections to servers, the values of [Server.Type].
const (
	Stdio     = "stdio"
	HTTP      = "http"
	SSE       = "sse"
	WebSocket = "websocket"
)

// Server is one upstream server. Values are expanded: no ${VAR} is left in them. What the
// root says for all servers is here too. A field without a comment is the key of that name.
// Printing, logging or encoding a Server leaves out the fields that may hold secrets.
type Server struct {
	// Name has letters, digits, '.', '_' and '-' only.
	Name string
	// Written is the name in the file where that is not Name.
	Written string
	// Type is one of the constants above; empty where a fault, or the entry of a
	// disabled server, leaves it open.
	Type string
	// Enabled is false for a server that is in the file but must not be used.
	Enabled bool

	Launch
	Remote
	Shown
	Running

	// Fault is why this server is unavailable, in the form "PATH: TEXT", several
	// joined by "; ". Empty for a sound server, and for a disabled one.
	Fault string
	// Secrets are the values to be struck out of logs, reasons and stderr tails:
	// what came out of variables and env files, and what headers, env, args and
	// URL hold that looks secret. Longest first, no duplicates.
	Secrets []string `json:"-"`
	// Credentials are those of the Secrets that a name or a place says are one, so
	// that they may change while the server stays the same. Longest first.
	Credentials []string `json:"-"`

	faults []Fault
}

// Launch starts a stdio server.
type Launch struct {
	Command string            `json:"-"`
	Args    []string          `json:"-"`
	Env     map[string]string `json:"-"` // what the entry adds to the environment that every child gets
	Cwd     string            `json:"-"`
	Framing string
}

// Remote reaches a server over the network.
type Remote struct {
	URL     string            `json:"-"` // the first of URLs
	URLs    []string          `json:"-"` // nil unless there are several instances
	Headers map[string]string `json:"-"`
	OAuth   conf.OAuth        `json:"-"`
	// CallerCredentials (the key credentials) are headers of requests to the server that
	// come from the caller. Nil: none.
	CallerCredentials map[string]CallerCredential
}

// Shown is what a server shows, and what may be done with it.
type Shown struct {
	Description string
	Tools       ToolFilter
	ReadOnly    bool
	Confirm     conf.Confirm
	Pin         conf.Pin
	Overrides   []conf.Override
	Validate    string
	Verbatim    []string // nil = the default globs
}

// Running is when and how a server runs.
type Running struct {
	Protocol, Session, Start string
	ConnectTimeout           time.Duration // 0 = nothing sets it
	CallTimeout, SessionIdle time.Duration
	StopIdle, IdleTimeout    time.Duration // 0 = never
	ToolTimeouts             []conf.ToolTimeout
	MaxConcurrency           int
}

// ToolFilter says which tools of a server exist. Deny wins.
type ToolFilter struct {
	// Allow are globs of tool names; nil allows all, it is never empty otherwise.
	Allow []string
	// Deny are globs of tool names.
	Deny []string
}

// Options are what a config needs from outside.
type Options struct {
	// Getenv looks a variable up; nil: no variable is set.
	Getenv func(string) (string, bool)
	// Executable is the path of mcpx itself, to recognise an entry that is mcpx;
	// may be empty.
	Executable string
	// ReadFile reads an envFile or a ${file:}; nil reads regular files of at most 1 MiB.
	ReadFile func(path string) ([]byte, error)
	// Keyring returns the secret of a ${keyring:NAME}, Run the output of a ${command:}.
	// They may take long, and are called from several goroutines. Nil: such a reference
	// stays as it is. No error may have a secret.
	Keyring func(name string) (string, error)
	Run     func(argv []string) (string, error)
	// Only, where all of it are servers, are those for which that is done.
	Only []string
}

// Served is the name that a server is served under, found by that name or by the one in
// the file; empty where there is no such server.
func (c *Config) Served(name string) string {
	found := ""
	for _, s := range c.Servers {
		if s.Name == name {
			return name
		}
		if s.Written == name && name != "" {
			found = s.Name
		}
	}
	return found
}

// ChangesServers reports whether servers can be changed over HTTP. Without auth nobody is
// asked who they are, so that the config must say it.
func (c *Config) ChangesServers() bool {
	if c.API != nil {
		return *c.API
	}
	return c.Auth != nil
}

// ServerFaults are the faults of single servers, in the order of the servers.
func (c *Config) ServerFaults() []Fault {
	var all []Fault
	for i := range c.Servers {
		all = append(all, c.Servers[i].faults...)
	}
	return all
}

// LogValue names the file and its servers; values stay out of logs.
func (c Config) LogValue() slog.Value {
	names := make([]string, len(c.Servers))
	for i := range c.Servers {
		names[i] = c.Servers[i].Name
	}
	return slog.GroupValue(slog.String("path", c.Path), slog.Any("servers", names))
}

// LogValue has the names of what the server defines; values stay out of logs.
func (s Server) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("name", s.Name),
		slog.String("type", s.Type),
		slog.Bool("enabled", s.Enabled),
		slog.Any("env", sortedKeys(s.Env)),
		slog.Any("headers", sortedKeys(s.Headers)),
	)
}

// String is the name, so that printing a Server shows no secret.
func (s Server) String() string { return s.Name }

// String names the file, so that printing a Config shows no secret.
func (c Config) String() string { return c.Path }

// defaults are the values of the keys that a file leaves out.
func defaults(path string) *Config {
	return &Config{
		Path: path,
		ForClients: ForClients{
			View: ViewTwoTools, CatalogueTokenBudget: 2000, SchemaCompression: true, MaxDescriptionLen: 300,
			Separator: "__", Prefix: "always", Compress: true, Resources: true, Prompts: true,
			StructuredContent: "auto", StartupWait: 5 * time.Second,
		},
		ForCalls: ForCalls{ResultTokenLimit: 20000, ResultPreviewTokens: 3000, ToonCompression: true, ExecWait: 20 * time.Second},
		ForServers: ForServers{
			MaxMessageBytes: 64 << 20, ShutdownGrace: 5 * time.Second, HealthCheck: true,
			Health: conf.Health{Interval: 30 * time.Second, Timeout: 5 * time.Second, Threshold: 2},
		},
		OverHTTP: OverHTTP{Limits: defaultLimits(), SessionTimeout: 30 * time.Minute, UI: true, Telemetry: Telemetry{Metrics: true}},
		ToLog:    ToLog{LogLevel: "info", LogFormat: "text"},
	}
}

// serverDefaults are the same for the keys of a server.
func serverDefaults() Server {
	return Server{
		Enabled: true,
		Launch:  Launch{Framing: "auto"},
		Shown:   Shown{Pin: conf.PinWarn, Validate: "strict"},
		Running: Running{
			Protocol: "auto", Session: "shared", Start: "eager", CallTimeout: 5 * time.Minute, SessionIdle: 5 * time.Minute,
		},
	}
}
