package registry

import (
	"context"
	"encoding/json"
	"net/http"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/request"
)

// PrincipalLogins are the logins of principals with one server. Safe for concurrent use.
type PrincipalLogins interface {
	// Held returns the ID of a principal's login. It is empty if the principal has no login that can be used.
	Held(ctx context.Context, p *caller.Principal) (id string, err error)
	// Authorize returns a func that adds the login with this ID to each request to the server (see [transport.Remote]), and a
	// func that returns the secrets of the login, which must not appear in any message.
	Authorize(p *caller.Principal, id string) (authorize func(http.RoundTripper) http.RoundTripper, secrets func() []string)
	// Need returns the error for a request of a principal without a login; its text says how to log in. If ask is true, Need
	// first asks the client to log in, and returns nil if the principal then has a login.
	Need(ctx context.Context, client *caller.Client, ask bool) error
}

// LoggedIn is the middleware for servers with a login for each principal. It asks a principal without a login to log in, and
// refuses the request if the principal does not. It refuses a notification without asking.
func (r *Registry) LoggedIn(next request.Handler) request.Handler {
	return func(ctx context.Context, q *request.Request) (json.RawMessage, error) {
		if err := r.LogIn(ctx, q.Client, q.To.Name, !q.Notification); err != nil {
			return nil, err
		}
		return next(ctx, q)
	}
}

// LogIn returns nil if a server needs no login of the client's principal, is unknown, or does not run, or if the principal has
// a login. If the principal has none and the parameter ask is true, LogIn asks the client to log in, and returns nil if the
// principal then has a login. In all other cases it returns an error, which says how to log in, or why no login can be used.
func (r *Registry) LogIn(ctx context.Context, client *caller.Client, server string, ask bool) error {
	r.mu.Lock()
	e := r.entries[server]
	r.mu.Unlock()
	if e == nil || e.server.Logins == nil || e.upstream == nil {
		return nil
	}
	if _, err := e.server.loginOf(ctx, client); err == nil || !ask || client.On() == nil {
		return err
	}
	return e.server.Logins.Need(ctx, client, true)
}

// loginOf returns the credentials for a session that uses the login of the client's principal.
func (s *Server) loginOf(ctx context.Context, client *caller.Client) (*request.Credentials, error) {
	p := client.On()
	if p == nil || client.Ident() == "" {
		return nil, lacking("a principal, whose own login is used")
	}
	id, err := s.Logins.Held(ctx, p)
	if err != nil {
		return nil, &request.UnavailableError{State: catalog.Unavailable, Reason: "your login cannot be read now: " + err.Error()}
	}
	if id == "" {
		return nil, s.Logins.Need(ctx, client, false)
	}
	return &request.Credentials{Principal: p.Key(), Login: id}, nil
}

// principalLists reports whether a server shows its lists only to principals who have logged in, and mcpx has not
// read them in a session of the client's principal. The caller holds the lock.
func (r *Registry) principalLists(e *entry, client *caller.Client) bool {
	if e.server.Logins == nil || e.upstream == nil || client.On() == nil || e.listsShared() {
		return false
	}
	_, known := r.own[e.server.ownerFor(client).HomeKey()].listsOf(e.server.Spec.Name, e.generation)
	return !known
}

// WaitPrincipalLists is for a server whose lists are known only after a login of the client's principal. It opens the principal's
// session and waits until the session has read the tools, or ctx ends. If the lists are known already, WaitPrincipalLists does
// nothing. The error says why there are no tools.
func (r *Registry) WaitPrincipalLists(ctx context.Context, client *caller.Client, server string) error {
	r.mu.Lock()
	e := r.entries[server]
	needed := e != nil && r.principalLists(e, client)
	r.mu.Unlock()
	if !needed {
		return nil
	}
	return r.listForPrincipal(ctx, e, client)
}

func (r *Registry) listForPrincipal(ctx context.Context, e *entry, client *caller.Client) error {
	own, err := e.server.loginOf(ctx, client)
	if err != nil {
		return err
	}
	c, release, err := r.clientSession(e, client, own, false)
	if err != nil || c == nil {
		return err
	}
	defer release()
	c.upstream.Await(ctx)
	r.listed(e.server.ownerFor(client).Remembered(), e, c)
	if status := c.upstream.Status(); !status.Known {
		return status.Unavailable()
	}
	return nil
}

// ForgetLogin ends the sessions with a server that use a login of this principal, and removes what the session of the principal
// (PerPrincipal) has listed.
func (r *Registry) ForgetLogin(server, principal string) {
	r.mu.Lock()
	for who, sessions := range r.clients {
		for key, c := range sessions {
			if key.server == server && c.loginOf == principal {
				r.endSessions(who, retired{}, 0, func(_ sessionKey, other *clientSession) bool { return other == c })
			}
		}
	}
	if own := r.own[caller.HomeKeyOfPrincipal(principal)]; own != nil {
		delete(own.servers, server)
		r.forgetMade()
	}
	listeners := r.onChange
	r.mu.Unlock()
	notify(listeners)
}
