package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/desk/config"
	"mcpx/internal/hosted/authserver"
	"mcpx/internal/hosted/page"
)

// loginState has the store of the logins through auth.front, and the functions that are called at each change. It is safe for
// concurrent use.
type loginState struct {
	mu    sync.Mutex
	store state.Followed // nil before the first use
	told  []func(authserver.Event)
}

// onLogin makes each later event call tell, one event after the other. tell must not block.
func (l *loginState) onLogin(tell func(authserver.Event)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, tell)
}

func (l *loginState) happened(e authserver.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, tell := range l.told {
		tell(e)
	}
}

// loginStore returns the store of logins: in the cluster or, without one, in a folder of the user.
func (s *clientState) loginStore(log *slog.Logger) (state.Followed, error) {
	s.logins.mu.Lock()
	defer s.logins.mu.Unlock()
	if s.logins.store != nil {
		return s.logins.store, nil
	}
	folder := ""
	if s.noFolder == nil {
		folder = filepath.Join(s.folder, "front")
	} else {
		log.Warn("no folder to keep logins in: they are forgotten when mcpx ends", "error", s.noFolder)
	}
	store, err := state.OpenFolder(folder, authserver.MostLogins, log)
	if err != nil {
		return nil, fmt.Errorf("keeping the logins: %w", err)
	}
	s.logins.store = store
	return store, nil
}

// signsIn returns the authorization server, through whose issuer viewers of a page sign in; nil if there is none.
func (a *App) signsIn() page.Issuer {
	if server := a.current.Load().authServer; server != nil {
		return server
	}
	return nil
}

// Logins returns the open logins through auth.front. is is false if this mcpx has no auth.front.
func (a *App) Logins() (all []authserver.Login, is bool) {
	server := a.current.Load().authServer
	if server == nil {
		return nil, false
	}
	return server.Logins(), true
}

// EndLogins ends logins through auth.front. Each element of which is the ID of a login, or the name of a principal whose logins all
// end.
func (a *App) EndLogins(ctx context.Context, which []string) (ended []authserver.Login, err error) {
	if server := a.current.Load().authServer; server != nil {
		return endLogins(ctx, server.Server, which)
	}
	return nil, nil
}

func endLogins(ctx context.Context, server *authserver.Server, which []string) (ended []authserver.Login, err error) {
	for _, one := range which {
		some, err := server.End(ctx, one, "ended by an administrator")
		ended = append(ended, some...)
		if err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// StoredLogins are the logins through auth.front that are stored in this user's folder, for use while no mcpx serves the config.
type StoredLogins struct {
	builder *builder
	config  *config.Config
	server  *authserver.Server
	gone    []*caller.Principal // the principals whose last login EndLogins has ended
}

var (
	errNoFront   = errors.New("this config has no auth.front, so nobody logs in through mcpx")
	errInCluster = errors.New("the logins of a cluster are with its replicas, and none of them runs here")
)

// OpenLogins opens the logins of a config. The caller must close them.
func OpenLogins(cfg *config.Config, log *slog.Logger) (*StoredLogins, error) {
	switch {
	case cfg.Auth == nil || cfg.Auth.Front == nil:
		return nil, errNoFront
	case cfg.Cluster != nil:
		return nil, errInCluster
	}
	b := &builder{profile: Hosted, path: cfg.HTTPPath, log: log, state: newClientState(log, 0), people: &page.People{}, accounts: new(accounts)}
	l := &StoredLogins{builder: b, config: cfg}
	b.state.logins.onLogin(func(e authserver.Event) {
		if e.Ended && e.Last && e.Principal != nil {
			l.gone = append(l.gone, e.Principal)
		}
	})
	server, err := b.newAuthServer(cfg.Auth, nil)
	if err != nil {
		return nil, fmt.Errorf("auth.front: %w", err)
	}
	l.server = server.Server
	return l, nil
}

// Close closes the logins.
func (l *StoredLogins) Close() { l.server.Close() }

// Logins is like [App.Logins].
func (l *StoredLogins) Logins() []authserver.Login { return l.server.Logins() }

// EndLogins is like [App.EndLogins]. For principals who then have no login left, it also ends their logins at servers. Its error
// names the logins that could not be revoked at the server.
func (l *StoredLogins) EndLogins(ctx context.Context, which []string) ([]authserver.Login, error) {
	ended, err := endLogins(ctx, l.server, which)
	for _, p := range l.gone {
		if failed := l.builder.endAccounts(l.config, p.ID); failed != nil {
			err = errors.Join(err, fmt.Errorf("the logins of %s at servers were forgotten, but not revoked: %w", p.Name, failed))
		}
	}
	l.gone = nil
	return ended, err
}
