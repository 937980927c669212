package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/logins"
	"mcpx/internal/hosted/authserver"
	"mcpx/internal/hosted/page"
)

// frontLogins has the store of the logins at the authorization server of mcpx (config key auth.front), and the function to call
// when the last login of a principal has ended. It is safe for concurrent use.
type frontLogins struct {
	mu      sync.Mutex
	store   state.Followed          // nil before the first use
	left    func(*caller.Principal) // to be called when a principal's last login has ended; nil before onLeft
	waiting []*caller.Principal     // the principals with whom to call left once it is set
}

// onLeft makes l call tell with each principal whose last login ends. If the last login of a principal has already ended, onLeft calls tell
// at once. tell must not block.
func (l *frontLogins) onLeft(tell func(*caller.Principal)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = tell
	for _, p := range l.waiting {
		tell(p)
	}
	l.waiting = nil
}

// hasLeft must not wait, because it is called while the store is locked. It does not: mu is held for long only while the store is
// opened, and then nobody has the store yet.
func (l *frontLogins) hasLeft(p *caller.Principal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == nil {
		l.waiting = append(l.waiting, p)
		return
	}
	l.left(p)
}

// frontLoginStore returns the store of logins through auth.front: in the cluster or, without a cluster, in a folder of the user.
// If there is no such folder, the logins are in memory.
func (s *clientState) frontLoginStore(log *slog.Logger) (state.Followed, error) {
	s.frontLogins.mu.Lock()
	defer s.frontLogins.mu.Unlock()
	if s.frontLogins.store != nil {
		return s.frontLogins.store, nil
	}
	folder := ""
	if s.noFolder == nil {
		folder = filepath.Join(s.folder, "front")
	} else {
		log.Warn("no folder to keep logins in: they are forgotten when mcpx ends", "error", s.noFolder)
	}
	store, err := state.OpenFolder(folder, authserver.MaxLogins, log)
	if err != nil {
		return nil, fmt.Errorf("keeping the logins: %w", err)
	}
	s.frontLogins.store = store
	return store, nil
}

// signsIn returns the authorization server through which viewers sign in to mcpx's pages; nil if there is none.
func (a *App) signsIn() page.Issuer {
	if server := a.current.Load().authServer; server != nil {
		return server
	}
	return nil
}

// Login is a login as administrators see it. If Server is empty, it is a login at mcpx through auth.front; otherwise it is a login of a
// principal at that server (oauth.per).
type Login struct {
	authserver.Login
	Server string `json:"server,omitempty"`
}

// Logins returns the logins through auth.front and the logins of principals at servers. possible is false if there can be no logins: the
// config has no auth.front, and no store of logins at servers exists.
func (a *App) Logins(ctx context.Context) (all []Login, possible bool, err error) {
	now := a.current.Load()
	return a.allLogins(ctx, now.config, serverOf(now.authServer))
}

func serverOf(s *authServer) *authserver.Server {
	if s == nil {
		return nil
	}
	return s.Server
}

// allLogins returns all logins of a config. server may be nil. possible is false if server is nil and no store of logins at servers exists.
func (b *builder) allLogins(ctx context.Context, cfg *config.Config, server *authserver.Server) (all []Login, possible bool, err error) {
	if server != nil {
		for _, one := range server.Logins() {
			all = append(all, Login{Login: one})
		}
	}
	store, accounts, err := b.accountsOf(ctx, cfg)
	for _, one := range accounts {
		all = append(all, loginAt(&one))
	}
	return all, server != nil || store != nil, err
}

func loginAt(one *logins.Account) Login {
	return Login{authserver.Login{ID: one.ID, Principal: one.Name, Began: one.Began, Renewed: one.Renewed}, one.Server}
}

// EndLogins ends logins and returns them. Each target is either the ID of a login, or the name of a principal, whose logins all end.
func (a *App) EndLogins(ctx context.Context, targets []string) (ended []Login, err error) {
	now := a.current.Load()
	return a.endLogins(ctx, now.config, serverOf(now.authServer), targets, a.accountEnded(byAdministrator))
}

const byAdministrator = "ended by an administrator"

// endLogins ends each login whose ID or principal's name is a target. It calls notify with each login at a server that has ended. server
// may be nil.
func (b *builder) endLogins(
	ctx context.Context, of *config.Config, server *authserver.Server, targets []string, notify func(*logins.Account, bool),
) (ended []Login, err error) {
	for _, one := range targets {
		if server == nil {
			break
		}
		some, err := server.End(ctx, one, byAdministrator)
		for _, l := range some {
			ended = append(ended, Login{Login: l})
		}
		if err != nil {
			return ended, err
		}
	}
	named := func(a *logins.Account) bool {
		return slices.Contains(targets, a.ID) || slices.Contains(targets, a.Name)
	}
	accounts, err := b.endAccounts(of, named, notify)
	for _, a := range accounts {
		ended = append(ended, loginAt(&a))
	}
	return ended, err
}

// StoredLogins are the logins of a config that are stored in this user's folder. A command uses them if no mcpx that serves the config
// is running.
type StoredLogins struct {
	builder *builder
	config  *config.Config
	server  *authserver.Server
	gone    []*caller.Principal // the principals whose last login has ended
}

var (
	errNoLogins  = errors.New("nobody logs in through mcpx: this config has no auth.front, and no server with oauth.per")
	errInCluster = errors.New("the logins of a cluster are with its replicas, and none of them runs here")
)

// OpenLogins opens the logins of a config, while no mcpx serves it. The caller must close them. If the config has a cluster,
// OpenLogins returns an error, because the logins are with the replicas.
func OpenLogins(cfg *config.Config, log *slog.Logger) (*StoredLogins, error) {
	if cfg.Cluster != nil {
		return nil, errInCluster
	}
	b := &builder{
		profile: Hosted, path: cfg.HTTPPath, log: log, state: newClientState(0), auditor: &auditor{},
		browsers: &page.Browsers{}, accounts: new(accounts),
	}
	l := &StoredLogins{builder: b, config: cfg}
	b.state.frontLogins.onLeft(func(p *caller.Principal) { l.gone = append(l.gone, p) })
	server, err := b.newAuthServer(cfg.Auth, nil)
	if err != nil {
		return nil, fmt.Errorf("auth.front: %w", err)
	}
	l.server = serverOf(server)
	return l, nil
}

// Close ends the work with the logins. They stay stored.
func (l *StoredLogins) Close() {
	if l.server != nil {
		l.server.Close()
	}
}

// Logins returns the logins through auth.front and the logins of principals at servers. It returns an error if the config allows no logins
// at all.
func (l *StoredLogins) Logins(ctx context.Context) ([]Login, error) {
	all, is, err := l.builder.allLogins(ctx, l.config, l.server)
	if !is && err == nil {
		err = errNoLogins
	}
	return all, err
}

// EndLogins ends each login whose ID or principal's name is a target. If this ends the last login of a principal at mcpx, the
// logins of the principal at servers end too. The error also says which logins could not be revoked at their servers.
func (l *StoredLogins) EndLogins(ctx context.Context, targets []string) ([]Login, error) {
	forgotten := func(*logins.Account, bool) {}
	ended, err := l.builder.endLogins(ctx, l.config, l.server, targets, forgotten)
	for _, p := range l.gone {
		more, failed := l.builder.endAccounts(l.config, ofPrincipal(l.config, l.builder.path, p.ID), forgotten)
		err = errors.Join(err, failed)
		for _, one := range more {
			ended = append(ended, loginAt(&one))
		}
	}
	l.gone = nil
	return ended, err
}
