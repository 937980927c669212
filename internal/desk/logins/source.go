package logins

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"mcpx/internal/base/netguard"
)

const (
	// refreshTime is how long the renewal of a login may take, including the wait for other processes.
	refreshTime = 2*netguard.RequestTime + 5*time.Second
	// renewPatience is how long a call waits for the renewal of a token that is valid for more than twice this time. Then the call uses
	// the old token, and the renewal goes on. If the token expires sooner, the call waits until the renewal ends.
	renewPatience = 2 * time.Second
	// maxWanted is the largest number of scopes in login.Wanted. Without this limit, a server could make the file of the login
	// grow without end.
	maxWanted = 50
	// keptSecrets is the largest number of secrets in source.seen.
	keptSecrets = 16
)

// source provides a [transport] with the tokens of one login, or with tokens that are issued to mcpx itself (Server.machine). It
// also renews them.
type source struct {
	logins *Logins
	server Server
	file   string
	web    *http.Client
	looked *stamp // the version of the file at the last call of Logins.Changed; guarded by Logins.mu

	mu    sync.Mutex
	stamp stamp // the version of the file when login was read or written
	login *login
	// unwritten is true if the field login is newer than the file, because writing the file failed.
	unwritten bool
	seen      []string // the latest secrets, which must be removed from texts
	renewal   *renewal // the latest renewal, which may be under way; nil if there was none
	// fresh is a token that mcpx got because the server had refused an older one. It becomes empty when the server accepts it. If
	// the server refuses fresh too, mcpx does not request one more token, because that would not help.
	fresh string
}

func newSource(l *Logins, s Server) *source {
	return &source{logins: l, server: s, file: loginFile(s), web: newHTTPClient(s)}
}

// busy reports whether the source has, or may soon have, tokens that are not in the file. If the source is in use, busy does not
// wait, and returns true.
func (s *source) busy() bool {
	if !s.mu.TryLock() {
		return true
	}
	defer s.mu.Unlock()
	return s.unwritten || s.renewal != nil && !s.renewal.answered()
}

func (s *source) secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// use makes l the login of later requests, and adds its secrets to s.seen. l is nil if there is no login. The caller holds s.mu.
func (s *source) use(l *login) {
	s.login = l
	if l == nil {
		return
	}
	for _, secret := range []string{l.Access, l.Refresh, l.Endpoint.Client.Secret} {
		if secret != "" && !slices.Contains(s.seen, secret) {
			s.seen = append(s.seen, secret)
		}
	}
	s.seen = s.seen[max(0, len(s.seen)-keptSecrets):]
}

// needed returns the error of a request that needs a login. why says why the existing login cannot be used; it is empty if there is
// no login.
func (s *source) needed(why string) *neededError {
	return &neededError{s.server.Name, why, s.server.Principal != ""}
}

// current returns the login, or nil if there is none. It reads the file again if the file may have changed. Tokens that are
// issued to mcpx itself (Server.machine) have no file.
func (s *source) current(ctx context.Context) (*login, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server.machine() {
		return s.login, nil
	}
	now := s.logins.store.stamp(s.file)
	if now == s.stamp && now != (stamp{}) {
		return s.login, nil
	}
	return s.read(ctx)
}

// read reads the login from its file. If the login could not be written and no other process has changed the file since, read
// returns the login in memory. The caller holds s.mu.
func (s *source) read(ctx context.Context) (*login, error) {
	now := s.logins.store.stamp(s.file)
	if s.unwritten && now == s.stamp {
		return s.login, nil
	}
	var l login
	switch err := s.logins.store.read(ctx, s.file, &l); {
	case errors.Is(err, fs.ErrNotExist):
		s.login, s.stamp = nil, stamp{absent: true}
		return nil, nil
	case errors.Is(err, errLost):
		return nil, s.needed(err.Error())
	case err != nil:
		return nil, &passingError{"the login cannot be read: " + err.Error()}
	}
	if l.Principal != s.server.Principal {
		return nil, s.needed("the stored login is of somebody else")
	}
	s.stamp, s.unwritten = now, false
	s.use(&l)
	return &l, nil
}

// token returns the token for the next request, or "" if there is no login. It renews a token that has expired or expires soon.
// If the renewal fails, and the old token is still valid, token returns the old one. It also does so if the renewal takes longer than
// renewPatience, and the old token lasts long enough.
func (s *source) token(ctx context.Context) (string, error) {
	l, err := s.current(ctx)
	switch {
	case err != nil:
		return "", err
	case l == nil || l.Access == "":
		return "", nil
	case l.usable(l.leeway()):
		return l.Access, nil
	}
	if l.usable(2 * renewPatience) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, renewPatience)
		defer cancel()
	}
	fresh, err := s.renew(ctx, l, nil)
	if err != nil {
		if l.usable(0) {
			return l.Access, nil
		}
		return "", err
	}
	return fresh.Access, nil
}

// refused returns another token after the server has refused one, or an error that says what the user must do. It returns "" if the
// request should not be repeated.
func (s *source) refused(ctx context.Context, token string, resp *http.Response) (string, error) {
	l, err := s.current(ctx)
	if err != nil {
		return "", err
	}
	c := readChallenge(resp.Header)
	missing := resp.StatusCode == http.StatusForbidden && c.missing
	switch {
	case l != nil && l.Access != "" && l.Access != token:
		return l.Access, nil // meanwhile, another call has renewed the token
	case resp.StatusCode == http.StatusForbidden && !missing:
		return "", nil
	case s.server.machine():
		return s.machineToken(ctx, l, c, missing)
	case missing:
		return "", s.want(ctx, c.scopes)
	case l == nil || l.Access == "":
		return "", nil
	case s.untried(token) || l.Refresh == "" && l.Ended == "":
		return "", s.needed("the server refuses the token of the login")
	}
	fresh, err := s.renew(ctx, l, nil)
	if err != nil {
		return "", err
	}
	s.setFresh(fresh.Access)
	return fresh.Access, nil
}

// untried reports whether token replaced a refused token, and the server has not accepted token yet.
func (s *source) untried(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return token != "" && token == s.fresh
}

// worked notes that the server has accepted the token.
func (s *source) worked(token string) {
	if s.untried(token) {
		s.setFresh("")
	}
}

func (s *source) setFresh(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh = token
}

// machineToken gets another token for mcpx itself (Server.machine), after the server has refused one. If another token would not
// help, machineToken returns an error. c is the server's challenge; missing means that the refused token lacks scopes.
func (s *source) machineToken(ctx context.Context, l *login, c challenge, missing bool) (string, error) {
	if l != nil {
		more := union(l.Scopes, c.scopes)
		if missing && len(more) == len(l.Scopes) || !missing && s.untried(l.Access) {
			return "", &passingError{"the server refuses the token that mcpx gets with oauth; check client_id and scopes"}
		}
		c.scopes = more
	}
	fresh, err := s.renew(ctx, l, &c)
	if err != nil {
		return "", err
	}
	s.setFresh(fresh.Access)
	return fresh.Access, nil
}

// want stores the scopes that the server asked for, so that the next login requests them too. It stores nothing if the file would
// then have more than maxWanted scopes. It always returns an error, which tells the user to log in again.
func (s *source) want(ctx context.Context, scopes []string) error {
	needed := s.needed("the server needs more scopes for this")
	ctx, cancel := detached(ctx)
	defer cancel()
	unlock, err := s.logins.store.lock(ctx, s.file)
	if err != nil {
		return needed
	}
	defer unlock()
	l := &login{Server: s.server.Name, URL: s.server.URL, Principal: s.server.Principal}
	if err := s.logins.store.read(ctx, s.file, l); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return needed
	}
	if more := union(l.Wanted, scopes); len(more) > len(l.Wanted) && len(more) <= maxWanted {
		l.Wanted = more
		if err := s.logins.store.write(ctx, s.file, l); err != nil {
			s.logins.log.Warn("the scopes that a server needs cannot be stored", "server", s.server.Name, "err", err)
		}
	}
	return needed
}

// renewal is a request for a new token.
type renewal struct {
	answer[*login]
	replaced string // the access token that the new one replaces
	c        *challenge
}

// renew gets a new token that replaces the one in previous, unless another call or process has already done so. Concurrent calls
// that replace the same token share one request. If ctx ends, renew returns, but the request goes on, because its response must be
// stored. c is the challenge with which the server has refused a token that is issued to mcpx itself (Server.machine). In all other
// cases c is nil.
func (s *source) renew(ctx context.Context, previous *login, c *challenge) (*login, error) {
	replaced := ""
	if previous != nil {
		replaced = previous.Access
	}
	s.mu.Lock()
	one := s.renewal
	if one == nil || one.answered() || one.replaced != replaced || !reflect.DeepEqual(one.c, c) {
		one = &renewal{answer[*login]{done: make(chan struct{})}, replaced, c}
		s.renewal = one
		s.logins.refreshing.Go(func() { // ends within twice refreshTime; Logins.Close waits for it
			defer close(one.done)
			ctx, cancel := detached(ctx)
			defer cancel()
			if s.server.machine() {
				one.value, one.err = s.ask(ctx, previous, c)
			} else {
				one.value, one.err = s.refresh(ctx, previous)
			}
		})
	}
	s.mu.Unlock()
	return one.wait(ctx)
}

// refresh renews the login with its refresh token, and stores the result. The lock of the file keeps other processes from using the
// same refresh token.
func (s *source) refresh(ctx context.Context, old *login) (*login, error) {
	unlock, err := s.logins.store.lock(ctx, s.file)
	if err != nil {
		return nil, &passingError{err.Error()}
	}
	defer unlock()
	// The request gets the full time again, because the wait for the lock may have used up most of it. If the request were cut off,
	// the login could be lost.
	ctx, cancel := detached(ctx)
	defer cancel()
	s.mu.Lock()
	// The file is read even if its stamp has not changed, because two quick writes can have the same stamp.
	l, err := s.read(ctx)
	s.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case l == nil:
		return nil, s.needed("")
	case l.Access != old.Access && l.usable(0):
		return l, nil
	case l.Ended != "":
		return nil, s.ended(l.Ended)
	case l.Refresh == "":
		return nil, s.ended("")
	}
	// A refresh token may work only once. If the new one could not be stored, the login would be lost. So this write tests
	// beforehand whether the disk, which may be full, accepts files.
	if err := s.logins.store.write(ctx, s.file, l); err != nil {
		return nil, &passingError{"the login cannot be stored: " + err.Error()}
	}
	token, err := l.Endpoint.ask(ctx, s.web, nil, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {l.Refresh}})
	fresh := *l
	if refusal, ok := errors.AsType[*refusedError](err); ok && final(refusal.code) {
		fresh.Ended = refusal.code
	} else if err != nil {
		return nil, &passingError{err.Error() + "; the login is kept, mcpx tries again"}
	} else {
		fresh.take(token)
		// If the renewed login has lost a scope that the old one had, the scope is removed from Wanted, until the server asks for
		// it again.
		fresh.Wanted = slices.DeleteFunc(slices.Clone(l.Wanted), func(scope string) bool {
			return slices.Contains(l.Scopes, scope) && !slices.Contains(fresh.Scopes, scope)
		})
	}
	err = s.logins.store.write(ctx, s.file, &fresh)
	if err != nil {
		s.logins.log.Error("a renewed login cannot be stored", "server", s.server.Name, "err", err)
	}
	s.mu.Lock()
	s.stamp, s.unwritten = s.logins.store.stamp(s.file), err != nil
	s.use(&fresh)
	s.mu.Unlock()
	if fresh.Ended != "" {
		return nil, s.ended(fresh.Ended)
	}
	return &fresh, nil
}

// take sets the tokens and scopes of the login from the response of a token endpoint.
func (l *login) take(token *oauth2.Token) {
	// Round removes the monotonic clock. That clock stands still while the machine sleeps, so after a sleep an expired token would
	// seem to be valid.
	l.Access, l.Refresh, l.Expiry, l.Issued = token.AccessToken, token.RefreshToken, token.Expiry.Round(0), time.Now().Round(0)
	l.Scopes = scopesOf(token.Extra("scope"), l.Scopes)
	l.Ended = ""
}

// final reports whether an error code means that the authorization server refuses permanently.
func final(code string) bool {
	return slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client", "invalid_target"}, code)
}

func (s *source) ended(code string) error {
	why := "the login has ended (" + code + ")"
	switch code {
	case "":
		why = "the login has expired, and has no refresh token"
	case "invalid_client", "unauthorized_client":
		why = "the authorization server no longer knows mcpx (" + code + ")"
	}
	return s.needed(why)
}

// ask gets a token that is issued to mcpx itself, and keeps it in memory only. previous has the old token, or is nil. c is the
// challenge with which the server has refused the old token, or nil. If another call has got a new token meanwhile, ask returns
// that token.
func (s *source) ask(ctx context.Context, previous *login, c *challenge) (*login, error) {
	now, err := s.current(ctx)
	if err != nil || now != previous && now != nil {
		return now, err // meanwhile, another call has got a token
	}
	l := &login{Server: s.server.Name, URL: s.server.URL}
	if previous != nil {
		*l = *previous
	}
	if c != nil || l.Endpoint.Token == "" {
		if c == nil {
			c = &challenge{}
		}
		found, err := discover(ctx, s.web, s.server, *c, wanted{asked: true, issuer: s.server.boundTo(l.Endpoint)})
		if err != nil {
			return nil, &passingError{err.Error()}
		}
		if err := s.server.movedFrom(l.Endpoint, found.server.Issuer); err != nil {
			return nil, passing(err)
		}
		l.Endpoint = s.server.endpointOf(found, client{ID: s.server.ClientID, Secret: s.server.ClientSecret})
		l.Scopes = s.server.scopes(found, *c)
	}
	asked := l.Scopes
	token, err := s.server.askAs(ctx, s.web, l.Endpoint, asked, url.Values{"grant_type": {"client_credentials"}})
	if err != nil {
		return nil, &passingError{err.Error()}
	}
	l.take(token)
	l.Scopes = asked
	s.mu.Lock()
	defer s.mu.Unlock()
	s.use(l)
	return l, nil
}

// askAs requests a token as the configured OAuth client, either for mcpx itself or in exchange for a caller's token. With the
// grant private_key_jwt, a signed assertion proves that mcpx is this client.
func (s Server) askAs(ctx context.Context, web *http.Client, e endpoint, scopes []string, params url.Values) (*oauth2.Token, error) {
	if s.Grant == PrivateKeyJWT {
		signed, err := assertion(e.Issuer, s.ClientID, s.Key)
		if err != nil {
			return nil, err
		}
		maps.Copy(params, signed)
	}
	return e.ask(ctx, web, scopes, params)
}

// endpointOf returns the token endpoint at which the client c gets tokens for s.
func (s Server) endpointOf(f *found, c client) endpoint {
	e := endpoint{
		Issuer: f.server.Issuer, Resource: f.resource, Token: f.server.TokenEndpoint,
		Audience: s.Audience, Methods: f.server.TokenEndpointAuthMethodsSupported, Client: c,
	}
	if netguard.Safe(f.server.RevocationEndpoint) {
		e.Revoke = f.server.RevocationEndpoint
	}
	return e
}

// scopes returns the scopes to request. These are the scopes in the config. If there are none, they are the scopes in the server's
// challenge. If there are none either, they are all scopes that the server's metadata name.
func (s Server) scopes(f *found, c challenge) []string {
	switch {
	case len(s.Scopes) > 0:
		return s.Scopes
	case len(c.scopes) > 0:
		return c.scopes
	}
	return f.scopes
}
