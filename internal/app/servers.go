package app

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/proc"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/builtin"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/demo"
	"mcpx/internal/desk/share"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

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
	return append(servers, b.upstreams(b.locals)...)
}

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

func rulesOf(cfg *config.Config, lock Lock) *policy.Rules {
	rules := &policy.Rules{Servers: make(map[string]policy.ServerRules), Disabled: cfg.DisabledTools, Rights: rightsOf(cfg)}
	if cfg.Confirm != conf.ConfirmNone {
		rules.Servers[builtin.Name] = policy.ServerRules{Confirm: cfg.Confirm}
	}
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
		PerClient:   sessionsOfOwn(&s),
		SessionIdle: s.SessionIdle,

		PerPrincipal: sessionPerPrincipal(&s),
	}
	if perPrincipal(&s) && b.profile.authServer {
		b.loginPerPrincipal(&out, &s)
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
		out.Fault = "needs a url; servers that dial in have no entry here, see the key dial"
	}
	if b.profile.oneClient && len(s.CallerCredentials) > 0 && out.Fault == "" {
		out.Fault = "its credentials come from the HTTP requests of callers, and mcpx serves over stdio"
	}
	out.Definition = definition(cfg, s)
	if b.origin.Pool != nil && !out.PerClient {
		b.share(&out, &s)
	}
	return out
}

// sessionsOfOwn reports whether single clients or principals have sessions of their own with a server.
func sessionsOfOwn(s *config.Server) bool {
	return s.Session == "per_client" || s.Session == "per_principal" || len(s.CallerCredentials) > 0
}

// sessionPerPrincipal reports whether each principal has a session of its own with a server.
func sessionPerPrincipal(s *config.Server) bool { return s.Session == "per_principal" }

// loginPerPrincipal makes each principal use a login of its own at a server. To read the server's lists of tools, resources and
// prompts, which all principals share, mcpx uses a session with the login of the config's user. Without that login, this session
// sends no request.
func (b *builder) loginPerPrincipal(server *registry.Server, s *config.Server) {
	all, err := b.accountStore()
	if err != nil {
		server.Fault = cmp.Or(server.Fault, err.Error())
		return
	}
	own := LoginServer(*s)
	server.Logins = &accountsAt{all, own, b.link}
	_, tokens := b.logins.Authorize(own)
	server.Spec.Remote.Authorize, server.Spec.Secrets = b.logins.Needed(own), server.Spec.Secrets.And(nil, tokens)
}

// share makes several sessions of the daemon use the same process or connection of a server: all sessions, or only the sessions in
// the same folder. The config decides which. If the config does not say, a table in mcpx decides; it lists packages that keep
// nothing of a session. If sessions do not share a server that is a local command, it starts only when the session first uses it.
func (b *builder) share(server *registry.Server, s *config.Server) {
	among := share.Of(s).Share
	if among == conf.ShareSession { // lazy, because the session may never use the server
		server.Spec.Lazy = server.Spec.Lazy || s.Type == config.Stdio
		return
	}
	mask := 0
	if b.origin.Umask != nil {
		mask = *b.origin.Umask
	}
	server.Spec.Launch.Cwd = b.session.Folder(s, among)
	server.Shared = registry.Key(s.Name, server.Definition, b.session.Digest(s, among), strconv.Itoa(mask))
}

// liveFields are the fields of a config.Server that can change while the server runs. If another field changes, the registry
// restarts the server.
var liveFields = []string{
	"Description", "Tools", "ReadOnly", "Overrides", "Confirm", "Pin", "Validate", "Verbatim",
	"CallTimeout", "IdleTimeout", "ToolTimeouts", "MaxConcurrency", "SessionIdle",
	// A renamed server always gets a new entry in the registry. But the digest of its settings (see definition) stays the same,
	// because the digest does not cover the name. So the registry knows that it must start the server only after the server with
	// the old name has ended.
	"Name",
	// If a credential changes, the field Secrets changes too and makes the server restart. The field Credentials affects only the name
	// of the cache file.
	"Credentials",
}

// definition returns a digest of the settings that cannot change while the server runs.
func definition(cfg *config.Config, s config.Server) string {
	parts := []any{cfg.HealthCheck, cfg.Health, cfg.MaxMessageBytes}
	fields := reflect.ValueOf(s)
	for _, field := range reflect.VisibleFields(fields.Type()) {
		if field.IsExported() && !field.Anonymous && !slices.Contains(liveFields, field.Name) {
			parts = append(parts, field.Name, fields.FieldByIndex(field.Index).Interface())
		}
	}
	text, _ := json.Marshal(parts) // cannot fail: parts has only strings, numbers, lists and maps
	return registry.Key(string(text))
}

// cacheKey returns the name under which the catalogue of a server is cached. It is a digest of the settings that determine which tools
// the server has. Credentials are left out, so that a new token does not lose the cache. Therefore two config files that differ only in
// a credential share a cached catalogue: after the start, each may show the tools of the other until the server has answered. In one
// file this cannot happen, because the digest includes the server's name.
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
				Command: s.Command, Args: s.Args, Cwd: b.origin.in(s.Cwd), Umask: b.origin.Umask, Reaper: b.reaper,
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
		Protocol:     s.Protocol, Lazy: s.Start == "lazy" || b.profile.fromDisk, StopIdle: s.StopIdle,
	}
	if s.Type == config.Stdio {
		spec.Launch.Env = proc.Environment(b.origin.environ(), s.Env)
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

// environ returns the environment of the process on whose behalf servers are started, in the form of os.Environ.
func (o Origin) environ() []string {
	if o.Folder == "" {
		return os.Environ()
	}
	return o.Environ
}

// in makes a relative path absolute: it resolves the path from the folder of the process on whose behalf servers are started. For
// the zero Origin, in returns path as it is.
func (o Origin) in(path string) string {
	if o.Folder == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(o.Folder, path)
}

func pairs(m map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, name+"="+m[name])
	}
	return list
}
