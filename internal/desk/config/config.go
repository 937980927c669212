// Package config reads the config file. The file contains servers, in the same form as in the files of MCP clients, and the
// settings of mcpx itself.
//
// In a file of valid JSON there are two kinds of faults. A fault of structure is mostly a wrong type, an unknown word or a mistyped
// key. It makes the whole file unusable, even if it is inside a server; [Faults] lists such faults. A fault in a value of one
// server is, for example, an unset variable, a bad URL or a missing command. It makes only this server unavailable, and is in
// [Server.Fault].
package config

import (
	"log/slog"
	"math"
	"time"

	"mcpx/internal/base/conf"
)

// Config is a config file with the defaults applied. It does not change while it is in use. A field without a comment has the value
// of the key with the same or a similar name; the tables in docs/ explain the keys.
type Config struct {
	// Path is the path of the file, as the caller passed it to [Parse].
	Path string
	// Servers are sorted by name. They include servers that are disabled or have faults.
	Servers []Server

	ForClients
	ForCalls
	ForServers
	OverHTTP
	ToLog

	// Secrets are values that must not appear in logs and messages. The secrets of servers are in [Server.Secrets].
	Secrets []string `json:"-"`
	// Commands are the names of the programs that mcpx ran, or tried to run, for ${command:} references. They are sorted and
	// without duplicates.
	Commands []string
	// Referred are the other files that the file refers to (${file:PATH}, envFile), sorted. Files that cannot be read are among
	// them.
	Referred []string
	// Warnings are for the log: about keys that are ignored, servers that are skipped or renamed, settings that are unsafe, and
	// the like. They contain no secrets.
	Warnings []string
}

// ForClients has the keys that say what clients and their models see.
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

// ForCalls has the keys that concern calls and their results.
type ForCalls struct {
	ResultTokenLimit, ResultPreviewTokens int
	ToonCompression                       bool
	ResultForms                           conf.ResultForms
	ExecWait                              time.Duration
	ExecWaitSet                           bool // whether the file has the key exec_wait
	DisabledTools                         []string
	Files                                 []string     // absolute if Config.Path is
	Confirm                               conf.Confirm // for the built-in server, and for servers without this key
	Learn                                 *bool        // nil means that the file does not have the key
	Programs                              conf.Programs
	Dial                                  *conf.Dial // nil means that no server may dial in, that is, connect to mcpx
}

// ForServers has keys at the root that concern all servers, or the process of mcpx itself.
type ForServers struct {
	MaxMessageBytes int64
	Memory          int64 // in bytes; 0 means that the file does not have the key
	MaxConcurrency  int
	// Drain is how long mcpx continues to serve over HTTP after it was told to end. Meanwhile /readyz already answers 503.
	Drain         time.Duration
	ShutdownGrace time.Duration
	HealthCheck   bool
	Health        conf.Health
	Registry      string // the URL of an MCP registry
	// Daemon says whether sessions over stdio, and the command mcpx exec, share one process, which is called the daemon. The daemon
	// ends when it has had no session for the time DaemonIdle.
	Daemon     bool
	DaemonIdle time.Duration
}

// OverHTTP has the keys that concern serving over HTTP.
type OverHTTP struct {
	Auth           *Auth     // nil means that a client needs no credential, unless TLS asks for a certificate
	TLS            *conf.TLS // nil means HTTP without TLS
	Limits         conf.Limits
	SessionTimeout time.Duration
	HTTPPath       string
	SSE            bool
	UI             UI
	API            *bool         // nil means that the file does not have the key
	Audit          *Audit        // nil means no audit trail
	Cluster        *conf.Cluster // nil means that mcpx runs alone
	Telemetry      Telemetry
}

// ToLog has the keys that concern the log.
type ToLog struct{ LogLevel, LogFormat, LogFile string }

// These are the values of [Config.View], which says what tools a client sees. With ViewTwoTools, it sees inspect, exec and few
// others, and uses all servers through them. With ViewTools, it sees all tools of all servers. ViewServer is a prefix before the
// name of a server: the client sees the tools of this server. ViewGroup is a prefix before the name of a group: [Group.View] says
// what the client sees.
const (
	ViewTwoTools = "two_tools"
	ViewTools    = "tools"
	ViewServer   = "servers/"
	ViewGroup    = "groups/"
)

// defaultHTTPPath is the default of the key http_path.
const defaultHTTPPath = "/mcp"

// DefaultRegistry is the default of the key registry: the URL of the official MCP registry.
const DefaultRegistry = "https://registry.modelcontextprotocol.io"

// Group is a named selection of servers and tools, which a client can use as if mcpx had nothing else.
type Group struct {
	Name string
	// Servers are the names of the servers in the group, as clients see them. nil means all servers.
	Servers []string
	// Tools selects tools of these servers. Its globs are compared with SERVER.TOOL.
	Tools    ToolFilter
	ReadOnly bool
	Confirm  conf.Confirm
	View     string // ViewTwoTools or ViewTools
	// CatalogueTokenBudget is how many tokens the catalogue of the group may cost. 0 means the value of
	// [ForClients.CatalogueTokenBudget].
	CatalogueTokenBudget int
}

// noLimit is for the fields ResultChars and DescriptionChars of a [conf.ClientRule]. There, 0 means that the file does not set the
// limit, so that the limit of mcpx itself applies to the client. If the file says 0, which means no limit, the field is noLimit.
const noLimit = math.MaxInt32

// These are the kinds of connections to servers. [Server.Type] has one of them.
const (
	Stdio     = "stdio"
	HTTP      = "http"
	SSE       = "sse"
	WebSocket = "websocket"
)

// Server is one upstream server. Defaults for servers from the root of the file are applied, and references such as
// ${VAR} are expanded. A field without a comment has the value of the key with the same name. Printing, logging or
// encoding a Server leaves out the fields that may contain secrets.
type Server struct {
	// Name consists of ASCII letters, digits, '.', '_' and '-'.
	Name string
	// Written is the name in the file if it differs from Name; otherwise it is empty.
	Written string
	// Type is [Stdio], [HTTP], [SSE] or [WebSocket]. It may be empty if the server is disabled or has a fault.
	Type    string
	Enabled bool

	Launch
	Remote
	Shown
	Running

	// Fault says why the server is unavailable, in the form "PATH: TEXT". Several faults are joined by "; ". It is
	// empty if the server is disabled.
	Fault string
	// Secrets are values that must not appear in logs and messages: most values of ${...} references, of variables from env
	// files and env_vars, the secrets in oauth, and what looks like a secret in headers, env, args and URLs. Short and common
	// values are not among them. The longest comes first, and there are no duplicates.
	Secrets []string `json:"-"`
	// Credentials are the Secrets whose name, place or form says that they are credentials. If only a credential changes, the
	// cached catalogue of the server is still used. The longest comes first.
	Credentials []string `json:"-"`

	faults []Fault
}

// Launch has the keys for starting a stdio server.
type Launch struct {
	Command string            `json:"-"`
	Args    []string          `json:"-"`
	Env     map[string]string `json:"-"` // added to the few variables that each server process gets
	Cwd     string            `json:"-"`
	Framing string
}

// Remote has the keys for reaching a server over the network.
type Remote struct {
	URL     string            `json:"-"` // the first of URLs, if URLs is not nil
	URLs    []string          `json:"-"` // nil unless the server has several instances
	Headers map[string]string `json:"-"`
	OAuth   conf.OAuth        `json:"-"`
	// CallerCredentials (the key credentials) says which headers of requests to the server get their values from the caller. The
	// keys of the map are the names of the headers.
	CallerCredentials map[string]CallerCredential
}

// Shown has the keys for what clients see of a server, and which of its tools they may call.
type Shown struct {
	Description string
	Tools       ToolFilter
	ReadOnly    bool
	Confirm     conf.Confirm
	Pin         conf.Pin
	Overrides   []conf.Override
	Validate    string
	Verbatim    []string // nil means the default globs
}

// Running has the keys for when and how a server runs.
type Running struct {
	Protocol, Session, Start string
	Share                    conf.Share    // empty means that the file does not set it
	ConnectTimeout           time.Duration // 0 means that the file does not set it
	CallTimeout, SessionIdle time.Duration
	StopIdle, IdleTimeout    time.Duration // 0 means never
	ToolTimeouts             []conf.ToolTimeout
	MaxConcurrency           int
}

// ToolFilter says which tools of a server or a group exist. A tool that matches both Allow and Deny does not exist.
type ToolFilter struct {
	// Allow and Deny are globs for names of tools. If Allow is nil, all tools exist that Deny does not match.
	Allow, Deny []string
}

// Options has the functions and values that reading a config needs.
type Options struct {
	// Getenv returns the value of an environment variable, and whether it is set. nil means that no variable is set.
	Getenv func(string) (string, bool)
	// Executable is the path of mcpx itself; it may be empty. If the command of a server starts mcpx itself as a gateway, the
	// server is skipped.
	Executable string
	// ReadFile reads the file of an envFile or a ${file:PATH}. nil means a function that reads regular files of at
	// most 1 MiB.
	ReadFile func(path string) ([]byte, error)
	// Keyring returns the secret for a ${keyring:NAME}, and Run returns the output of the command in a ${command:...}. Each may
	// take long, is called from several goroutines, and must return no error that contains a secret. If Keyring or Run is nil,
	// references of its kind are not expanded.
	Keyring func(name string) (string, error)
	Run     func(argv []string) (string, error)
	// If Absent is true, a reference outside of servers may lack a value, such as a ${VAR} whose variable is not set. This is no
	// fault then, and the reference stays as the file writes it. mcpx sets Absent for commands that do not need the secrets of the
	// file.
	Absent bool
	// The list Only has names of servers, as the file writes them. If it is not empty, Keyring and Run are called only for
	// references in these servers, and for references outside of servers. But if the file lacks one of these servers, the list is
	// ignored.
	Only []string
}

// Served returns the [Server.Name] of the server that the user means by name. A server with this Name comes first. Otherwise it is
// the server that has this name in the file ([Server.Written]). If no server has the name, Served returns "".
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

// ChangesServers reports whether servers can be changed over HTTP. Without the key api, this is allowed only if Auth is set,
// because clients then have to prove who they are.
func (c *Config) ChangesServers() bool {
	if c.API != nil {
		return *c.API
	}
	return c.Auth != nil
}

// Learns reports whether mcpx learns which keys and types the results of tools have. Without the key learn, it does so only if
// Auth is nil: otherwise one principal could see keys from another principal's results.
func (c *Config) Learns() bool {
	if c.Learn != nil {
		return *c.Learn
	}
	return c.Auth == nil
}

// ServerFaults returns the faults of all enabled servers; disabled servers have none. Each fault makes only its own server
// unavailable.
func (c *Config) ServerFaults() []Fault {
	var all []Fault
	for i := range c.Servers {
		all = append(all, c.Servers[i].faults...)
	}
	return all
}

// LogValue returns only the path of the file and the names of its servers, because values must not be logged.
func (c Config) LogValue() slog.Value {
	names := make([]string, len(c.Servers))
	for i := range c.Servers {
		names[i] = c.Servers[i].Name
	}
	return slog.GroupValue(slog.String("path", c.Path), slog.Any("servers", names))
}

// LogValue returns the name and type of the server, whether it is enabled, and the names of its variables and headers, but not
// their values.
func (s Server) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("name", s.Name),
		slog.String("type", s.Type),
		slog.Bool("enabled", s.Enabled),
		slog.Any("env", sortedKeys(s.Env)),
		slog.Any("headers", sortedKeys(s.Headers)),
	)
}

// String returns the name, so that printing a Server shows no secret.
func (s Server) String() string { return s.Name }

// String returns the path, so that printing a Config shows no secret.
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
			Programs: conf.Programs{Timeout: time.Minute, MaxTimeout: 5 * time.Minute, Memory: 64e6, Calls: 200, AtOnce: 16},
		},
		ForServers: ForServers{
			MaxMessageBytes: 64 << 20, ShutdownGrace: 5 * time.Second, HealthCheck: true,
			Health:   conf.Health{Interval: 30 * time.Second, Timeout: 5 * time.Second, Threshold: 2},
			Registry: DefaultRegistry,
			Daemon:   true, DaemonIdle: 10 * time.Minute,
		},
		OverHTTP: OverHTTP{
			Limits: defaultLimits(), SessionTimeout: 30 * time.Minute, HTTPPath: defaultHTTPPath, UI: UI{Shown: true},
			Telemetry: Telemetry{Metrics: true},
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
