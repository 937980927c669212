package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"mcpx/internal/caller"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/logins"
	"mcpx/internal/hosted/audit"
	"mcpx/internal/hosted/connect"
	"mcpx/internal/hosted/identity"
)

// followLastLogins makes mcpx end all logins of a principal at servers as soon as the last login of this principal at mcpx has
// ended.
func (a *App) followLastLogins() {
	a.state.frontLogins.onLeft(func(p *caller.Principal) {
		a.loops.Go(func() { a.endAccountsOf(p.ID, "the last login at mcpx has ended") }) // ends within logins.EndTime for each server
	})
}

// endDeleted compares the config of the previous Runtime with that of the next one. If the last token of a principal was removed
// from the config, it ends the principal's logins at servers.
func (a *App) endDeleted(previous, next *Runtime) {
	if previous.config.Auth == nil {
		return
	}
	gone := map[string]bool{}
	for _, t := range previous.config.Auth.Tokens {
		gone[identity.OfToken(t).ID] = true
	}
	if next.config.Auth != nil {
		for _, t := range next.config.Auth.Tokens {
			delete(gone, identity.OfToken(t).ID)
		}
	}
	for principal := range gone {
		a.loops.Go(func() { a.endAccountsOf(principal, "the last token was deleted") }) // ends within logins.EndTime for each server
	}
}

// endAccountsOf ends the logins of a principal at servers, as far as they belong to this config (see ofPrincipal).
func (a *App) endAccountsOf(principal, reason string) {
	cfg := a.current.Load().config
	_, err := a.endAccounts(cfg, ofPrincipal(cfg, a.path, principal), a.accountEnded(reason))
	if err != nil {
		a.log.Warn("logins of somebody who has left were forgotten, but could not be revoked", "err", err)
	}
}

// accountEnded returns a function that must be called when a login at a server has ended. The function ends the sessions that use
// the login. Its parameter local is true if this process has ended the login. In that case it also logs the end, and records the
// end with the reason in the audit trail.
func (a *App) accountEnded(reason string) func(one *logins.Account, local bool) {
	return func(one *logins.Account, local bool) {
		if local {
			a.log.Info("a login at a server has ended", "server", one.Server, "principal", one.Name, "reason", reason)
			a.auditor.Login(audit.Login{Event: audit.LoginEnded, Principal: one.Name, Server: one.Server, Number: one.ID, Reason: reason})
		}
		a.Registry.ForgetLogin(one.Server, one.Principal)
	}
}

// ofPrincipal returns a function that reports whether a login at a server belongs to a principal of this config. The ID of the
// principal is not enough: another config of this user may have a principal with the same ID. So the login must also be at a server
// of this config. If the server has left the config, the login must have been made at the public URL of this mcpx instead. path is
// the path of the endpoint.
func ofPrincipal(cfg *config.Config, path, principal string) func(*logins.Account) bool {
	return func(one *logins.Account) bool {
		here := cfg.Auth != nil && one.Redirect == publicBase(cfg, path)+connect.CallbackPath
		return one.Principal == principal && (here || slices.ContainsFunc(cfg.Servers, func(s config.Server) bool {
			return perPrincipal(&s) && s.Name == one.Server && s.URL == one.URL
		}))
	}
}

// accountsOf returns the store of the logins that principals have at servers, and all logins in the store. Some of them may be
// at servers that are no longer in the config. The store is nil if nothing suggests such logins: no server of the config has
// them, there is no cluster, and the folder for them does not exist.
func (b *builder) accountsOf(ctx context.Context, cfg *config.Config) (*logins.Logins, []logins.Account, error) {
	used := slices.ContainsFunc(cfg.Servers, func(s config.Server) bool { return perPrincipal(&s) }) || b.state.cluster != nil
	if !used && b.state.noFolder == nil {
		_, err := os.Stat(filepath.Join(b.state.folder, accountsFolder))
		used = err == nil
	}
	if !used {
		return nil, nil, nil
	}
	all, err := b.accountStore()
	if err != nil {
		return nil, nil, err
	}
	accounts, err := all.Accounts(ctx)
	return all, accounts, err
}

// endAccounts revokes and forgets each login at a server for which match returns true, and returns these logins. It calls notify
// with each of them (see accountEnded). The error also says which logins could not be revoked; these logins are forgotten too, if
// their files can be deleted.
func (b *builder) endAccounts(
	cfg *config.Config, match func(*logins.Account) bool, notify func(one *logins.Account, local bool),
) (ended []logins.Account, err error) {
	all, accounts, err := b.accountsOf(context.Background(), cfg)
	for _, one := range accounts {
		if !match(&one) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), logins.EndTime)
		local, failed := all.End(ctx, &one)
		cancel()
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s at %s: %w", one.Name, one.Server, failed))
		}
		notify(&one, local)
		ended = append(ended, one)
	}
	return ended, err
}
