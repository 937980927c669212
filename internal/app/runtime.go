package app

import (
	"fmt"
	"log/slog"
	"sync"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/proc"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/caller"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/logins"
	"mcpx/internal/desk/share"
	"mcpx/internal/executor"
	"mcpx/internal/hosted/dial"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/hosted/page"
	"mcpx/internal/jq"
	"mcpx/internal/programs"
	"mcpx/internal/registry"
	"mcpx/internal/view"
)

// Runtime is a config in the form that the other packages need. It is immutable, except that it caches the settings of views.
// The other packages read their settings from the current Runtime, so a reload swaps one pointer and the registry's snapshot
// (see swap).
type Runtime struct {
	// config is the content of the config file, except for what the Profile changes and for two keys. MaxMessageBytes has the
	// value from the start of mcpx. Auth may come from an earlier version of the file (see the method auth).
	config *config.Config

	servers    []registry.Server
	registry   registry.Options // includes the rules, which become part of each snapshot
	calls      *executor.Settings
	limits     conf.Limits
	identity   *identity.State   // nil means that every client may connect
	authServer *authServer       // nil means that mcpx runs no authorization server
	struck     *sanitize.Secrets // the secrets that mcpx removes from texts and from the trace
	views      sync.Map          // the settings of views by name, created at the first use
}

// builder makes Runtimes from configs, and has what all Runtimes of an App share.
type builder struct {
	profile Profile
	locals  []Local
	only    []string // the servers that are needed; empty means all
	view    string   // the name of the view that is served over stdio, and over HTTP at the path in the field path
	path    string   // the path of the endpoint over HTTP
	public  bool     // whether other machines can reach the address; set by Listen
	log     *slog.Logger
	reaper  *proc.Reaper
	origin  Origin
	session *share.Session // made from origin
	filters *jq.Runner
	runner  *programs.Runner
	logins  *logins.Logins
	state   *clientState
	auditor *auditor
	// accounts has the logins of principals at servers. link returns the URL of the page on which a principal logs in to a server.
	accounts *accounts
	link     func(server string, p *caller.Principal) string
	browsers *page.Browsers // the browsers that have signed in to mcpx's pages through auth.front
	trace    func(server string) func(received bool, message []byte)

	dialledIn func() []dial.Server // returns the servers that are dialled in at the moment
}

// build creates the Runtime for a config, and does everything that can fail. previous is the current Runtime, or nil at the
// start. The new Runtime reuses the parts of previous that have state and have not changed; previous itself is not modified.
// The caller must make the new Runtime the current one, or call its method end with previous.
func (b *builder) build(to *config.Config, previous *Runtime) (*Runtime, error) {
	cfg := *to
	lock, err := b.lock(to)
	switch {
	case err != nil && previous != nil:
		return nil, err
	case err != nil:
		b.log.Error("the approved tools cannot be read, so no tool is approved", "err", err)
	}
	if previous == nil {
		previous = &Runtime{}
	} else {
		cfg.MaxMessageBytes, cfg.Auth = previous.config.MaxMessageBytes, b.auth(to, previous.config.Auth)
	}
	r := &Runtime{config: &cfg}
	if r.authServer, err = b.newAuthServer(cfg.Auth, previous.authServer); err != nil {
		return nil, fmt.Errorf("auth.front: %w", err)
	}
	// Nothing below can fail, so the authorization server need not be closed again.
	r.servers = b.servers(&cfg)
	rules := rulesOf(&cfg, lock)
	r.servers = append(r.servers, b.withDialled(&cfg, rules, lock)...)
	r.registry = registryOptions(&cfg, rules)
	r.calls = executor.NewSettings(b.callOptions(&cfg), previous.calls)
	r.limits = limitsOf(&cfg)
	r.identity = identity.NewState(b.identities(&cfg, r.authServer), previous.identity)
	r.struck = sanitize.NewSecrets(secretsOf(&cfg), nil)
	return r, nil
}

// settings returns the settings of a view, even if the config has no such view.
func (r *Runtime) settings(name string) *view.Settings {
	if made, ok := r.views.Load(name); ok {
		return made.(*view.Settings)
	}
	made, _ := r.views.LoadOrStore(name, view.NewSettings(viewOptions(r.config, name)))
	return made.(*view.Settings)
}

// end ends what the Runtime next does not contain any more: the requests whose credentials next does not accept, and the
// authorization server, unless next uses it too. next is nil if mcpx ends.
func (r *Runtime) end(next *Runtime) {
	if next == nil {
		next = &Runtime{}
	}
	r.identity.Revoke(next.identity)
	if r.authServer != nil && r.authServer != next.authServer {
		r.authServer.Close()
	}
}
