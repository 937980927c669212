package app

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"sort"
	"strings"

	"mcpx/internal/base/proc"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/demo"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// servers makes the registry's servers out of a config.
func (b *builder) servers(cfg *config.Config) []registry.Server {
	if b.profile.samples {
		return b.samples()
	}
	needed := b.only
	if part, _ := scopeOf(cfg, b.view); b.profile.oneClient && part != nil {
		needed = part.Servers
	}
	servers := make([]registry.Server, 0, len(cfg.Servers))
	for _, s := range cfg.Servers {
		server := b.server(cfg, s)
		if len(needed) > 0 && !slices.Contains(needed, s.Name) {
			server.Disabled = true
		}
		servers = append(servers, server)
	}
	return servers
}

// samples are the servers of the demo.
func (b *builder) samples() (servers []registry.Server) {
	for _, sample := range demo.Servers() {
		servers = append(servers, registry.Server{
			Description: sample.Description,
			Spec: upstream.Spec{Options: transport.Options{
				Name: sample.Name, Type: transport.InProcess, Serve: sample.Serve, Logger: b.log,
			}},
		})
	}
	return servers
}

// rulesOf are the filters of a config.
func rulesOf(cfg *config.Config, lock Lock) *policy.Rules {
	rules := &policy.Rules{Servers: make(map[string]policy.ServerRules), Disabled: cfg.DisabledTools, Rights: rightsOf(cfg)}
	for _, s := range cfg.Servers {
		rules.Servers[s.Name] = policy.ServerRules{
			Allow: s.Tools.Allow, Deny: s.Tools.Deny, ReadOnly: s.ReadOnly, Approved: lock[s.Name],
			Pin: s.Pin, Confirm: s.Confirm, Overrides: s.Overrides,
		}
	}
	return rules
}

func (b *builder) server(cfg *config.Config, s config.Server) registry.Server {
	out := registry.Server{
		Spec:        b.spec(cfg, s),
		Key:         cacheKey(s),
		Description: s.Description,
		Disabled:    !s.Enabled,
		Fault:       s.Fault,
		PerClient:   s.Session == "per_client" || len(s.CallerCredentials) > 0,
		SessionIdle: s.SessionIdle,
	}
	for header, from := range s.CallerCredentials {
		if from.Exchange {
			out.Exchange = b.logins.Exchange(LoginServer(s))
			continue
		}
		if out.Credentials == nil {
			out.Credentials = make(map[string]registry.Credential)
		}
		out.Credentials[header] = registry.Credential{Header: from.Header, Claim: from.Claim}
	}
	if s.Type == config.WebSocket && s.URL == "" && out.Fault == "" {
		out.Fault = "needs a url: servers that dial in are not supported yet"
	}
	if b.profile.oneClient && len(s.CallerCredentials) > 0 && out.Fault == "" {
		out.Fault = "its credentials come with the requests of callers over HTTP, and mcpx serves over stdio"
	}
	out.Definition = definition(cfg, s)
	return out
}

// liveFields are the fields of a config.Server that can change while the server runs.
// A change of any other field stops the server and starts it anew.
var liveFields = []string{
	"Description", "Tools", "ReadOnly", "Overrides", "Confirm", "Pin", "Validate", "Verbatim",
	"CallTimeout", "IdleTimeout", "ToolTimeouts", "MaxConcurrency", "SessionIdle",
	// Name: a renamed server is a new entry in any case. Its process must wait for the
	// end of the old one, which the registry finds by the same definition.
	"Name",
	// Credentials: they are among the Secrets, and decide only a file name on disk.
	"Credentials",
}

// definition identifies the settings that a running server cannot change.
func definition(cfg *config.Config, s config.Server) string {
	parts := []any{cfg.HealthCheck, cfg.Health, cfg.MaxMessageBytes}
	fields := reflect.ValueOf(s)
	for _, field := range reflect.VisibleFields(fields.Type()) {
		if field.IsExported() && !field.Anonymous && !slices.Contains(liveFields, field.Name) {
			parts = append(parts, field.Name, fields.FieldByIndex(field.Index).Interface())
		}
	}
	text, _ := json.Marshal(parts) // of strings, numbers, lists and maps
	return registry.Key(string(text))
}

// cacheKey names the catalogue of a server on disk, by the settings that decide which
// tools the server has. It leaves out credentials: after each rotation of a token the
// next start would know no tools. So two config files that differ only in a credential
// share a catalogue, and may show each other's tools until the server has answered,
// moments after the start. Within one file the name separates two accounts of a server.
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

func (b *builder) spec(cfg *config.Config, s config.Server) upstream.Spec {
	spec := upstream.Spec{
		Options: transport.Options{
			Name: s.Name, Type: s.Type,
			Launch: transport.Launch{
				Command: s.Command, Args: s.Args, Cwd: s.Cwd, Reaper: b.reaper,
				ContentLength: s.Framing == "content-length", NewlineOnly: s.Framing == "newline",
			},
			Remote:     transport.Remote{URL: s.URL, URLs: s.URLs, Headers: s.Headers},
			MaxMessage: cfg.MaxMessageBytes,
			Secrets:    sanitize.NewSecrets(s.Secrets, nil),
			Logger:     b.log, Trace: b.trace(s.Name),
		},
		Introduction: upstream.Introduction{Name: "mcpx", Version: Version()},
		Timeouts:     upstream.Timeouts{Connect: s.ConnectTimeout},
		Concurrency:  upstream.Concurrency{Max: s.MaxConcurrency, Queue: cfg.Limits.Server.Queue},
		Protocol:     s.Protocol, Lazy: s.Start == "lazy", StopIdle: s.StopIdle,
	}
	if s.Type == config.Stdio {
		spec.Launch.Env = proc.Environment(os.Environ(), s.Env)
	}
	if s.Type != config.Stdio && !s.OAuth.Off {
		authorize, tokens := b.logins.Authorize(LoginServer(s))
		spec.Remote.Authorize, spec.Secrets = authorize, spec.Secrets.And(nil, tokens)
	}
	if cfg.HealthCheck {
		spec.Health = cfg.Health
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
