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
	"encoding/json"
	"log/slog"
	"math"
	"time"
)

// Config is one config file, read, with the defaults applied. It is never
// written to after [Parse] returned it.
type Config struct {
	// Path is the file, as it was given.
	Path string
	// Servers are sorted by name. Disabled and faulty ones are among them.
	Servers []Server

	// SchemaCompression: schemas become TypeScript; otherwise minified JSON Schema.
	SchemaCompression bool
	// ToonCompression: results may become TOON; otherwise JSON is only minified.
	ToonCompression bool
	// MaxDescriptionLen is in characters; 0 is no limit.
	MaxDescriptionLen int
	// StructuredContent is auto, always, once or never.
	StructuredContent string
	// ShortArgumentNames: inspect and exec take server, tool and args.
	ShortArgumentNames bool
	// CatalogueTokenBudget bounds the description of inspect, in tokens; at least 1.
	CatalogueTokenBudget int
	// CatalogueCharLimit bounds it in UTF-16 units too; 0 is no limit.
	CatalogueCharLimit int
	// ResultTokenLimit is where a result is cut; 0 is no limit.
	ResultTokenLimit int
	// ResultPreviewTokens bounds the first look at JSON that is over the limit; 0 is
	// ResultTokenLimit.
	ResultPreviewTokens int
	// MaxMessageBytes bounds one message, both ways.
	MaxMessageBytes int64
	// MaxConcurrency bounds the open calls of all servers together; 0 is no limit.
	MaxConcurrency int
	// StartupWait is how long tools/list may wait for servers never seen before; 0
	// is no wait.
	StartupWait time.Duration
	// ExecWait is how long exec may wait for a server that is connecting; 0 is no
	// wait.
	ExecWait time.Duration
	// ShutdownGrace is how long open calls may go on after TERM.
	ShutdownGrace time.Duration
	// Resources and Prompts say whether clients are shown those of the servers.
	Resources, Prompts bool
	// DisabledTools are globs over SERVER.TOOL.
	DisabledTools []string
	// Clients are the rules for single clients, in the order of the file.
	Clients     []ClientRule
	HealthCheck HealthCheck

	// Confirm is off, destructive or all: which calls a user must confirm. ReadDoor is
	// whether there is a tool for the calls of read-only tools alone.
	Confirm  string
	ReadDoor bool
	// Apps lists tools that have apps beside the two tools, for clients that show apps.
	Apps bool

	// View is what a client gets over stdio and at /mcp: ViewTwoTools, ViewTools,
	// ViewServer+NAME or ViewGroup+NAME.
	View string
	// Groups are named parts of the catalogue, sorted by name.
	Groups []Group
	// Separator and Prefix (always, conflict or never) make the names of tools in a
	// view that shows all of them; Compress is whether their results are compressed.
	Separator, Prefix string
	Compress          bool
	// SSE serves the transport of revision 2024-11-05 too.
	SSE bool
	// SessionTimeout is how long a session of a client over HTTP may go unused, more
	// than 0.
	SessionTimeout time.Duration
	// Limits are the members of limits, but for the concurrent calls of all, which are
	// MaxConcurrency, and of servers, which are that of each.
	Limits Limits

	// Auth says who may connect over HTTP; nil = everybody who reaches the address.
	Auth *Auth
	// TLS is what HTTP is served with; nil: none.
	TLS *TLS

	// UI is whether there is a status page.
	UI bool
	// Audit is nil where no trail is kept.
	Audit     *Audit
	Telemetry Telemetry
	// API is what the config says of changing servers over HTTP; nil = nothing.
	API *bool

	// LogLevel is debug, info, warn or error; LogFormat is text or json.
	LogLevel, LogFormat string
	// LogFile gets the log too, beside stderr; empty: nowhere else.
	LogFile string

	// Secrets are the values to be struck out that belong to no server.
	Secrets []string `json:"-"`

	// Commands are the programs that were run for values of servers, each once, sorted.
	Commands []string
	// Warnings are for the log: what was ignored or skipped, and where. They hold
	// no values.
	Warnings []string
}

// ClientRule says what differs for the clients whose clientInfo.name matches.
type ClientRule struct {
	// Glob is matched against the name.
	Glob string
	// StructuredContent is auto, always, once, never, or empty where the rule says nothing.
	StructuredContent string
	// DescriptionChars bounds the description of inspect, in UTF-16 units; 0
	// where the rule says nothing, NoLimit where it says 0.
	DescriptionChars int
	// ResultChars bounds the texts of a result in the same way, in bytes of UTF-8; at
	// least 1000.
	ResultChars int
	// Text is auto, json, or empty where the rule says nothing.
	Text string
	// CallWait is how long the client waits for a call; 0 where the rule says nothing,
	// a year where it says 0.
	CallWait time.Duration
}

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
	Tools ToolFilter
	// ReadOnly: only tools that are declared read-only exist.
	ReadOnly bool
	// Confirm is off, destructive or all; the stricter one of it and a server's is used.
	Confirm string
	// View is ViewTwoTools or ViewTools.
	View string
	// CatalogueTokenBudget is 0 where the one of the file is used.
	CatalogueTokenBudget int
}

// NoLimit is more than anything has: it lifts the bound that is known of a client.
const NoLimit = math.MaxInt32

// HealthCheck says how servers that have no calls are watched.
type HealthCheck struct {
	Enabled           bool
	Interval, Timeout time.Duration
	// FailureThreshold is how many checks in a row must fail, at least 1.
	FailureThreshold int
}

// The kinds of connections to servers, the values of [Server.Type].
const (
	Stdio     = "stdio"
	HTTP      = "http"
	SSE       = "sse"
	WebSocket = "websocket"
)

// Server is one upstream server. Values are expanded: no ${VAR} is left in them.
// Printing, logging or encoding a Server leaves out the fields that may hold secrets.
type Server struct {
	// Name has letters, digits, '.', '_' and '-' only.
	Name string
	// Written is the name in the file where that is not Name.
	Written string
	// Type is one of the constants above; empty where a fault, or the entry of a
	// disabled server, leaves it open.
	Type string

	// Command, Args, Env and Cwd are of stdio servers. Cwd may be empty. Env is
	// what the entry adds to the small environment that every child gets.
	Command string            `json:"-"`
	Args    []string          `json:"-"`
	Env     map[string]string `json:"-"`
	Cwd     string            `json:"-"`
	// Framing is auto, newline or content-length.
	Framing string

	// Protocol is the era that is tried: auto, legacy or modern.
	Protocol string

	// URL and Headers are of remote servers.
	URL string `json:"-"`
	// URLs are the addresses of all instances of the server, where there are several; URL is
	// the first.
	URLs    []string          `json:"-"`
	Headers map[string]string `json:"-"`
	// CallerCredentials (the key credentials) are headers of requests to the server that
	// come from the caller. Nil: none.
	CallerCredentials map[string]CallerCredential
	// OAuth is of http and sse servers.
	OAuth OAuth `json:"-"`

	// Enabled is false for a server that is in the file but must not be used.
	Enabled bool
	// Description replaces the server's own instructions; empty: they stay.
	Description string
	Tools       ToolFilter
	// ReadOnly: only tools that are declared read-only exist.
	ReadOnly bool
	// Confirm is off, destructive or all.
	Confirm string
	// Pin is warn, block or off: what happens to tools whose definition was not approved.
	Pin string
	// Overrides repair what the server declares of its tools, in the order of the file.
	Overrides []Override
	// Validate is strict or off.
	Validate string
	// Verbatim are globs of tool names whose results stay as they are; nil stands for
	// the default globs, an empty list for no globs.
	Verbatim []string

	// ConnectTimeout is 0 where nothing sets it.
	ConnectTimeout time.Duration
	// CallTimeout and SessionIdle are more than 0.
	CallTimeout, SessionIdle time.Duration
	// Start is eager or lazy: a lazy server starts with its first call.
	Start string
	// StopIdle ends a server that has no calls for so long; 0 is never.
	StopIdle time.Duration
	// IdleTimeout ends a call that neither answers nor reports progress for so
	// long; 0 is no such limit.
	IdleTimeout time.Duration
	// ToolTimeouts replace CallTimeout for single tools; the first that matches
	// is used.
	ToolTimeouts []ToolTimeout
	// MaxConcurrency bounds the open calls; 0 is no limit.
	MaxConcurrency int
	// Session is shared or per_client.
	Session string

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

// ToolFilter says which tools of a server exist. Deny wins.
type ToolFilter struct {
	// Allow are globs of tool names; nil allows all, it is never empty otherwise.
	Allow []string
	// Deny are globs of tool names.
	Deny []string
}

// Override repairs what a server declares of the tools whose names match.
type Override struct {
	Glob string
	// Name is empty, and the others are nil, where they stay. Annotations and Arguments
	// are JSON objects.
	Name                   string
	Description            *string
	Annotations, Arguments json.RawMessage
}

// ToolTimeout is the call timeout of the tools whose names match, more than 0.
type ToolTimeout struct {
	Glob    string
	Timeout time.Duration
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
		Path:                 path,
		SchemaCompression:    true,
		Resources:            true,
		Prompts:              true,
		UI:                   true,
		ToonCompression:      true,
		MaxDescriptionLen:    300,
		StructuredContent:    "auto",
		CatalogueTokenBudget: 2000,
		ResultTokenLimit:     20000,
		ResultPreviewTokens:  3000,
		MaxMessageBytes:      64 << 20,
		StartupWait:          5 * time.Second,
		ExecWait:             20 * time.Second,
		ShutdownGrace:        5 * time.Second,
		SessionTimeout:       30 * time.Minute,
		Limits:               defaultLimits(),
		HealthCheck: HealthCheck{
			Enabled:          true,
			Interval:         30 * time.Second,
			Timeout:          5 * time.Second,
			FailureThreshold: 2,
		},
		Confirm:   "off",
		View:      ViewTwoTools,
		Separator: "__",
		Prefix:    "always",
		Compress:  true,
		Telemetry: Telemetry{Metrics: true},
		LogLevel:  "info",
		LogFormat: "text",
	}
}

func serverDefaults(name string) Server {
	return Server{
		Name:        name,
		Framing:     "auto",
		Protocol:    "auto",
		Enabled:     true,
		Validate:    "strict",
		CallTimeout: 5 * time.Minute,
		SessionIdle: 5 * time.Minute,
		StopIdle:    Unset,
		Session:     "shared",

		MaxConcurrency: Unset,
	}
}
