// Package config reads the config file: servers, in the form that MCP clients have them in their
// own files, and the settings of mcpx itself.
//
// There are two kinds of faults. A fault of structure (a wrong type, an unknown value, a mistyped key)
// makes the whole file unusable; all of them are reported at once, as [Faults]. A fault inside one server
// (an unset variable, a bad URL, a missing command) is kept in [Server.Fault]: that server is unavailable
// and the others work.
package config

import (
	"log/slog"
	"math"
	"time"

	"mcpx/internal/base/conf"
)

// Config is a config file with the defaults applied. It does not change after [Parse]. A field without a
// comment is the key of that name, whose row has the meaning.
type Config struct {
	// Path is the file, as it was given.
	Path string
	// Servers are sorted by name and include disabled and faulty ones.
	Servers []Server

	ForClients
	ForCalls
	ForServers
	OverHTTP
	ToLog

	// Secrets are values to strike out of texts, beside those of the servers.
	Secrets []string `json:"-"`
	// Commands are the programs that were run for ${command:} references, without duplicates, sorted.
	Commands []string
	// Warnings are for the log: what was ignored or skipped, and where. They have no values.
	Warnings []string
}

// ForClients has the keys for what clients and their models see.
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

// ForCalls has the keys for calls and their results.
type ForCalls struct {
	ResultTokenLimit, ResultPreviewTokens int
	ToonCompression                       bool
	ResultForms                           conf.ResultForms
	ExecWait                              time.Duration
	DisabledTools                         []string
	Files                                 []string     // absolute paths
	Confirm                               conf.Confirm // of servers that do not have the key, and of the built-in server
	Learn                                 *bool        // nil = the file does not have the key
}

// ForServers has the keys for all servers together.
type ForServers struct {
	MaxMessageBytes int64
	Memory          int64 // 0 = the file does not have the key
	MaxConcurrency  int
	ShutdownGrace   time.Duration
	HealthCheck     bool
	Health          conf.Health
}

// OverHTTP has the keys for serving over HTTP.
type OverHTTP struct {
	Auth           *Auth     // nil = every client that reaches the address may connect
	TLS            *conf.TLS // nil = none
	Limits         conf.Limits
	SessionTimeout time.Duration
	HTTPPath       string
	SSE, UI        bool
	API            *bool  // nil = the file does not have the key
	Audit          *Audit // nil = no audit trail
	Telemetry      Telemetry
}

// ToLog has the keys for the log.
type ToLog struct{ LogLevel, LogFormat, LogFile string }

// The values of [Config.View]; the last two are prefixes of the name of a server or group.
const (
	ViewTwoTools = "two_tools"
	ViewTools    = "tools"
	ViewServer   = "servers/"
	ViewGroup    = "groups/"
)

// DefaultHTTPPath is the default of http_path.
const DefaultHTTPPath = "/mcp"

// Group is a named part of the catalogue.
type Group struct {
	Name string
	// Servers are the names that its servers are served under; nil = all.
	Servers []string
	// Tools are globs over SERVER.TOOL.
	Tools    ToolFilter
	ReadOnly bool
	Confirm  conf.Confirm
	View     string
	// CatalogueTokenBudget is 0 if the file's is used.
	CatalogueTokenBudget int
}

// NoLimit, in a rule for clients, lifts a limit that mcpx knows of that client.
const NoLimit = math.MaxInt32

// The kinds of connections to servers, the values of [Server.Type].
const (
	Stdio     = "stdio"
	HTTP      = "http"
	SSE       = "sse"
	WebSocket = "websocket"
)

// Server is one upstream server, with the defaults that the root sets, and with ${VAR} expanded. A field
// without a comment is the key of that name. Printing, logging or encoding a Server leaves out the fields
// that may hold secrets.
type Server struct {
	// Name has letters, digits, '.', '_' and '-' only.
	Name string
	// Written is the name in the file, if it differs from Name.
	Written string
	// Type is one of the constants above; it may be empty for a faulty or disabled server.
	Type    string
	Enabled bool

	Launch
	Remote
	Shown
	Running

	// Fault says why the server is unavailable, as "PATH: TEXT", several joined by "; ". It is empty for a
	// disabled server.
	Fault string
	// Secrets are the values to strike out of texts: the values of variables and env files, and what looks
	// secret in headers, env, args and URL. Longest first, no duplicates.
	Secrets []string `json:"-"`
	// Credentials are the Secrets that are credentials by their name or place. A server with another
	// credential is still the same server. Longest first.
	Credentials []string `json:"-"`

	faults []Fault
}

// Launch starts a stdio server.
type Launch struct {
	Command string            `json:"-"`
	Args    []string          `json:"-"`
	Env     map[string]string `json:"-"` // added to the small environment that every process gets
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
	// come from the caller.
	CallerCredentials map[string]CallerCredential
}

// Shown is what clients see of a server, and which of its tools they may call.
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
	// Both are globs of tool names. A nil Allow allows all.
	Allow, Deny []string
}

// Options are what reading a config needs from outside.
type Options struct {
	// Getenv looks a variable up; nil: no variable is set.
	Getenv func(string) (string, bool)
	// Executable is the path of mcpx itself, by which an entry that would start it is skipped; may be empty.
	Executable string
	// ReadFile reads an envFile or a ${file:}; nil reads regular files of at most 1 MiB.
	ReadFile func(path string) ([]byte, error)
	// Keyring returns the secret of a ${keyring:NAME}, Run the output of a ${command:}.
	// They may take long, are called from several goroutines, and their errors must not have a secret.
	// With nil such a reference stays unexpanded.
	Keyring func(name string) (string, error)
	Run     func(argv []string) (string, error)
	// Only, if all its names are servers, limits Keyring and Run to the references of these.
	Only []string
}

// Served finds a server by the name that it is served under, or else by the name in the file, and returns the
// former; empty if there is no such server.
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

// ChangesServers reports whether servers can be changed over HTTP. The default is to allow it with auth, where
// clients have to prove who they are.
func (c *Config) ChangesServers() bool {
	if c.API != nil {
		return *c.API
	}
	return c.Auth != nil
}

// Learns reports whether the shapes of results are learned. The default is not to where there is auth, as what one principal was sent
// could show in what another reads.
func (c *Config) Learns() bool {
	if c.Learn != nil {
		return *c.Learn
	}
	return c.Auth == nil
}

// ServerFaults lists the faults inside servers.
func (c *Config) ServerFaults() []Fault {
	var all []Fault
	for i := range c.Servers {
		all = append(all, c.Servers[i].faults...)
	}
	return all
}

// LogValue names the file and its servers, and keeps values out of logs.
func (c Config) LogValue() slog.Value {
	names := make([]string, len(c.Servers))
	for i := range c.Servers {
		names[i] = c.Servers[i].Name
	}
	return slog.GroupValue(slog.String("path", c.Path), slog.Any("servers", names))
}

// LogValue has names only, and keeps values out of logs.
func (s Server) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("name", s.Name),
		slog.String("type", s.Type),
		slog.Bool("enabled", s.Enabled),
		slog.Any("env", sortedKeys(s.Env)),
		slog.Any("headers", sortedKeys(s.Headers)),
	)
}

// String is the name: printing a Server shows no secret.
func (s Server) String() string { return s.Name }

// String is the path: printing a Config shows no secret.
func (c Config) String() string { return c.Path }

func defaults(path string) *Config {
	return &Config{
		Path: path,
		ForClients: ForClients{
			View: ViewTwoTools, CatalogueTokenBudget: 1200, SchemaCompression: true, MaxDescriptionLen: 300,
			Separator: "__", Prefix: "always", Compress: true, Resources: true, Prompts: true,
			StructuredContent: "auto", StartupWait: 5 * time.Second,
		},
		ForCalls: ForCalls{
			ResultTokenLimit: 20000, ResultPreviewTokens: 3000, ToonCompression: true, ResultForms: conf.AllForms,
			ExecWait: 20 * time.Second,
		},
		ForServers: ForServers{
			MaxMessageBytes: 64 << 20, ShutdownGrace: 5 * time.Second, HealthCheck: true,
			Health: conf.Health{Interval: 30 * time.Second, Timeout: 5 * time.Second, Threshold: 2},
		},
		OverHTTP: OverHTTP{
			Limits: defaultLimits(), SessionTimeout: 30 * time.Minute, HTTPPath: DefaultHTTPPath, UI: true, Telemetry: Telemetry{Metrics: true},
		},
		ToLog: ToLog{LogLevel: "info", LogFormat: "text"},
	}
}

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
