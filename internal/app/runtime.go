package app

import (
	"fmt"
	"log/slog"
	"sync"

	"mcpx/internal/base/proc"
	"mcpx/internal/base/wiretrace"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/logins"
	"mcpx/internal/executor"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/jq"
	"mcpx/internal/registry"
	"mcpx/internal/view"
)

// Runtime is a config in force, in the form that the other packages need. It is immutable. They read their settings from
// the Runtime in force, so that a reload is the swap of one pointer.
type Runtime struct {
	// config is the config file, except that Auth and MaxMessageBytes may come from an earlier one.
	config *config.Config

	servers    []registry.Server
	registry   registry.Options // has the rules, which go into each snapshot
	calls      *executor.Settings
	limits     limits.Options
	identity   *identity.State // nil = every client may connect
	authServer *authServer     // nil = none
	secrets    wiretrace.Secrets
	views      sync.Map // the settings of views by name, made at the first use
}

// builder makes Runtimes, and has what all Runtimes of an App share.
type builder struct {
	profile Profile
	only    []string // the servers that are needed; none = all
	view    string   // the view over stdio and at path
	path    string   // the path of the endpoint over HTTP
	public  bool     // other machines reach the address; set by Listen
	log     *slog.Logger
	reaper  *proc.Reaper
	filters *jq.Runner
	logins  *logins.Logins
	state   *clientState
	trace   func(server string) func(received bool, message []byte)
}

// build makes the Runtime of a config, and does all that can fail. It takes over what has not changed and has state from
// before, the Runtime in force, which stays as it is; at the start before is nil. The caller puts the new Runtime in force, or
// calls its end with before.
func (b *builder) build(to *config.Config, before *Runtime) (*Runtime, error) {
	cfg := *to
	lock, err := b.lock(to)
	switch {
	case err != nil && before != nil:
		return nil, err
	case err != nil:
		b.log.Error("the approved tools cannot be read, so no tool is approved", "err", err)
	}
	if before == nil {
		before = &Runtime{}
	} else {
		cfg.MaxMessageBytes, cfg.Auth = before.config.MaxMessageBytes, b.auth(to, before.config.Auth)
	}
	r := &Runtime{config: &cfg}
	if r.authServer, err = b.newAuthServer(cfg.Auth, before.authServer); err != nil {
		return nil, fmt.Errorf("auth.front: %w", err)
	}
	// Nothing fails from here on, so the authorization server need not be closed again.
	r.servers = b.servers(&cfg)
	r.registry = registryOptions(&cfg, rulesOf(&cfg, lock))
	r.calls = executor.NewSettings(b.callOptions(&cfg), before.calls)
	r.limits = limitsOf(&cfg)
	r.identity = identity.NewState(b.identities(&cfg, r.authServer), before.identity)
	r.secrets = secretsOf(&cfg)
	return r, nil
}

// settings returns the settings of a view, which the config need not have.
func (r *Runtime) settings(name string) *view.Settings {
	if made, ok := r.views.Load(name); ok {
		return made.(*view.Settings)
	}
	made, _ := r.views.LoadOrStore(name, view.NewSettings(viewOptions(r.config, name)))
	return made.(*view.Settings)
}

// end ends what next, which may be nil, has not taken over: requests whose credentials it does not accept, and the
// authorization server.
func (r *Runtime) end(next *Runtime) {
	if next == nil {
		next = &Runtime{}
	}
	r.identity.Revoke(next.identity)
	if r.authServer != nil && r.authServer != next.authServer {
		r.authServer.Close()
	}
}
