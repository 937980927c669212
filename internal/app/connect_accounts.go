package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/delay"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/state"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/logins"
	"mcpx/internal/hosted/audit"
	"mcpx/internal/hosted/connect"
	"mcpx/internal/request"
)

// accounts has the logins of principals at servers (config key oauth.per), and the pages on which principals log in. It is safe for
// concurrent use.
type accounts struct {
	mu     sync.Mutex
	logins *logins.Logins // nil before the first use
	pages  *connect.Pages // made for the public URL in base; nil before the first use
	base   string

	pending state.Sessions[connect.Pending]
	codes   state.Sessions[connect.Code]
}

// close waits until renewed tokens are saved, but not longer than the timeout.
func (a *accounts) close(timeout time.Duration) {
	a.mu.Lock()
	all := a.logins
	a.mu.Unlock()
	if all != nil {
		all.Close(timeout)
	}
}

// accountsFolder is the name of the folder with the logins of principals, in the user's folder for mcpx. The name must not
// change, as the logins of earlier versions are there.
const accountsFolder = "people"

// accountStore returns the logins of principals: in the cluster or, without a cluster, in a folder of the user.
func (b *builder) accountStore() (*logins.Logins, error) {
	b.accounts.mu.Lock()
	defer b.accounts.mu.Unlock()
	switch c := b.state.cluster; {
	case b.accounts.logins != nil:
	case c != nil:
		b.accounts.logins = logins.NewShared(c.Records(), b.log)
	case b.state.noFolder != nil:
		return nil, fmt.Errorf("there is no folder to keep the logins of people in: %w", b.state.noFolder)
	default:
		secret, err := state.SecretFile(filepath.Join(b.state.folder, "people.key"), b.log)
		if err != nil {
			return nil, fmt.Errorf("keeping the key of the logins of people: %w", err)
		}
		b.accounts.logins = logins.NewOfPrincipals(filepath.Join(b.state.folder, accountsFolder), secret, b.log)
	}
	return b.accounts.logins, nil
}

// perPrincipal reports whether each principal logs in to the server with an account of its own.
func perPrincipal(s *config.Server) bool {
	return s.OAuth.PerPrincipal && !s.OAuth.Off && s.Type != config.Stdio
}

// accountsAt implements [registry.PrincipalLogins] for one server: it gives access to the logins of all principals at this
// server.
type accountsAt struct {
	all    *logins.Logins
	server logins.Server
	link   func(server string, p *caller.Principal) string
}

func (a *accountsAt) of(principal string) logins.Server {
	s := a.server
	s.Principal = principal
	return s
}

// Held returns the ID of a principal's login, or "" if the principal has no usable login.
func (a *accountsAt) Held(ctx context.Context, who *caller.Principal) (string, error) {
	return a.all.Held(ctx, a.of(who.ID))
}

// Authorize returns two functions for the login with this ID. The first makes a transport add the login's tokens to requests. The second
// lists the tokens, so that mcpx can remove them from texts.
func (a *accountsAt) Authorize(who *caller.Principal, id string) (func(http.RoundTripper) http.RoundTripper, func() []string) {
	return a.all.WithID(a.of(who.ID), id)
}

const (
	// askTime is how long a user may take to say whether they will open the link.
	askTime = 10 * time.Minute
	// afterOpening is how long a call waits for the login, after the user has agreed to open the link. It is short, because most
	// clients give up a call after a minute.
	afterOpening = 45 * time.Second
	lookEvery    = 200 * time.Millisecond
)

// Need is called when a principal without a login uses the server. It returns an error with a link to the page on which the
// principal logs in. If ask is true and the client can open links for the user, Need first shows the link and waits for the
// login. It returns nil if the principal has then logged in. If the user does not agree to open the link, the error has no
// link.
func (a *accountsAt) Need(ctx context.Context, client *caller.Client, ask bool) error {
	who := client.On()
	link := a.link(a.server.Name, who)
	name := sanitize.Line(who.Name, 100)
	needs := &request.UnavailableError{State: catalog.NeedsLogin, Reason: "show the user this link, which only " + name +
		" can use, and call again once they have logged in: " + link}
	params := wire.AppendQuoted([]byte(`{"mode":"url","elicitationId":"`+rand.Text()+`","url":`), link)
	params = append(wire.AppendQuoted(append(params, `,"message":`...), "Log in to "+a.server.Name+" once, as "+name+"."), '}')
	if !ask || client.Cannot("elicitation/create", params) != "" {
		return needs
	}
	bounded, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answer, err := client.Ask(bounded, "elicitation/create", params)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return needs
	case wire.MemberText(answer, "action") != "accept":
		return &request.UnavailableError{State: catalog.NeedsLogin, Reason: "the user did not open the link to log in. Ask what to do instead"}
	}
	bounded, stop := context.WithTimeout(ctx, afterOpening)
	defer stop()
	for bounded.Err() == nil {
		if id, err := a.Held(bounded, who); err == nil && id != "" {
			return nil
		}
		delay.Sleep(bounded, lookEvery)
	}
	return needs
}

// linkFor returns the address of the page on which a principal logs in to a server, or "" if there is no such page.
func (a *App) linkFor(server string, p *caller.Principal) string {
	if pages := a.connectPages(); pages != nil {
		return pages.Link(server, p)
	}
	return ""
}

// publicBase returns the public URL of this mcpx: the URL in auth.resource without the path of the endpoint, which is the parameter path.
// cfg.Auth must not be nil.
func publicBase(cfg *config.Config, path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(cfg.Auth.Resource, "/"), path)
}

// connectPages returns the pages on which principals log in to servers. It returns nil if no server of the config needs such
// logins, or if there can be no such pages: for example, mcpx does not serve over HTTP, or the config has no auth.resource.
func (a *App) connectPages() *connect.Pages {
	now := a.current.Load()
	if now == nil || now.config.Auth == nil || now.config.Auth.Resource == "" || !a.profile.authServer {
		return nil
	}
	any := false
	for i := range now.config.Servers {
		any = any || perPrincipal(&now.config.Servers[i])
	}
	if !any {
		return nil
	}
	base := publicBase(now.config, a.path)
	a.accounts.mu.Lock()
	defer a.accounts.mu.Unlock()
	if a.accounts.pages != nil && a.accounts.base == base {
		return a.accounts.pages
	}
	if a.accounts.pending == nil {
		if c := a.state.cluster; c != nil {
			a.accounts.pending = state.NewStored[connect.Pending]("connect", c.Records())
			a.accounts.codes = state.NewStored[connect.Code]("connectcode", c.Records())
		} else {
			a.accounts.pending, a.accounts.codes = connect.NewPending(), connect.NewCodes()
		}
	}
	o := connect.Options{
		Base: base, Secrets: a.state.secrets, Accounts: (*appAccounts)(a), Pending: a.accounts.pending, Codes: a.accounts.codes,
		Once: a.state.once, Log: a.log, Caller: a.callerOf, Viewer: a.viewerOf,
	}
	if now.authServer != nil {
		o.SignIn = func(w http.ResponseWriter, r *http.Request, back string) {
			if server := a.current.Load().authServer; server != nil {
				server.SignIn(w, r, back)
			}
		}
	}
	pages, err := connect.New(o)
	if err != nil {
		a.log.Error("people cannot log in to servers", "err", err)
		return nil
	}
	a.accounts.pages, a.accounts.base = pages, base
	return pages
}

// callerOf returns the principal whose credential a request has; nil if every client may connect. It returns an error if the
// credential is missing or invalid.
func (a *App) callerOf(r *http.Request) (*caller.Principal, error) {
	proof, err := a.identity.Request(r)
	if err != nil || proof == nil {
		return nil, err
	}
	return proof.Principal, nil
}

// viewerOf returns the principal who has signed in (through auth.front) to mcpx's pages in the browser that sends r; nil if nobody has.
func (a *App) viewerOf(r *http.Request) *caller.Principal {
	proof, err := a.browsers.Proof(r)
	if err != nil || proof == nil {
		return nil
	}
	return proof.Principal
}

// appAccounts implements [connect.Accounts], through which the pages for logging in use the servers of the current config.
type appAccounts App

// server returns a server of the current config in the form that package logins needs. ok is false if principals cannot log in to
// the server with accounts of their own: there is no such server, it is disabled, it has a fault, or it needs no such logins.
func (a *appAccounts) server(name, principal string) (s logins.Server, ok bool) {
	for _, one := range a.current.Load().config.Servers {
		if one.Name == name && one.Enabled && one.Fault == "" && perPrincipal(&one) {
			s = LoginServer(one)
			s.Principal = principal
			return s, true
		}
	}
	return s, false
}

// Title returns what the pages show for a server: its URL. The second result is false if principals cannot log in to this
// server with accounts of their own.
func (a *appAccounts) Title(server string) (string, bool) {
	s, ok := a.server(server, "")
	return s.URL, ok
}

// login returns the server called server for this principal, and the store of logins. It returns an error if principals do not
// log in to the server, or if there is no store.
func (a *appAccounts) login(server, principal string) (all *logins.Logins, s logins.Server, err error) {
	s, ok := a.server(server, principal)
	if !ok || principal == "" {
		return nil, s, fmt.Errorf("people do not log in to %s by themselves", sanitize.Line(server, 80))
	}
	all, err = a.accountStore()
	return all, s, err
}

// Connected reports whether a principal has a usable login at a server.
func (a *appAccounts) Connected(ctx context.Context, server, principal string) bool {
	all, s, err := a.login(server, principal)
	if err != nil {
		return false
	}
	id, err := all.Held(ctx, s)
	return err == nil && id != ""
}

// Begin begins a login, after which the browser comes back to the URL redirect. pending is the state of the login, which Finish
// needs; it contains secrets. address returns the URL of the login page; its argument is the value of the OAuth parameter state in
// that URL.
func (a *appAccounts) Begin(
	ctx context.Context, server string, of connect.Principal, redirect string,
) (pending json.RawMessage, address func(state string) string, err error) {
	all, s, err := a.login(server, of.ID)
	if err != nil {
		return nil, nil, err
	}
	one, err := all.Begin(ctx, s, redirect)
	if err != nil {
		return nil, nil, err
	}
	one.Name = of.Name
	pending, err = json.Marshal(one)
	return pending, one.Address, err
}

// Finish completes a login, stores it, and ends the sessions that used an earlier login. answer is the query with which the
// browser came back.
func (a *appAccounts) Finish(
	ctx context.Context, server string, of connect.Principal, pending json.RawMessage, answer url.Values,
) error {
	all, s, err := a.login(server, of.ID)
	if err != nil {
		return err
	}
	var one logins.Pending
	if err := json.Unmarshal(pending, &one); err != nil {
		return err
	}
	if _, err := all.Finish(ctx, s, &one, answer); err != nil {
		return err
	}
	a.auditor.Login(audit.Login{Event: audit.LoginBegan, Principal: of.Name, Server: server, Number: logins.AccountID(s)})
	a.Registry.ForgetLogin(server, of.ID) // ends the sessions that used an earlier account
	return nil
}

// Disconnect revokes and forgets the login of a principal at a server. If it cannot be revoked, it is forgotten nevertheless,
// and the error says why. After other errors, the login may still be there.
func (a *appAccounts) Disconnect(ctx context.Context, server string, of connect.Principal) error {
	all, s, err := a.login(server, of.ID)
	if err != nil {
		return err
	}
	ended, err := all.Revoke(ctx, s)
	if ended {
		a.auditor.Login(audit.Login{
			Event: audit.LoginEnded, Principal: of.Name, Server: server, Number: logins.AccountID(s), Reason: "disconnected",
		})
	}
	a.Registry.ForgetLogin(server, of.ID)
	return err
}

// Sees reports whether a principal may use a server, according to auth.rights.
func (a *appAccounts) Sees(p *caller.Principal, server string) bool {
	viewer := caller.New(caller.Place{Principal: p, View: config.ViewTwoTools}, caller.Said{})
	_, ok := a.Executor.Catalogue(&viewer).Server(server)
	return ok
}
