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
	// refreshTime bounds a refresh: the wait for other processes and the request.
	refreshTime = 2*netguard.RequestTime + 5*time.Second
	// mostWanted bounds the scopes that a server can have the next login ask for.
	mostWanted = 50
	// keptSecrets is how many of the newest tokens are struck out of texts.
	keptSecrets = 16
)

// source has the tokens of one server.
type source struct {
	logins *Logins
	server Server
	file   string
	web    *http.Client
	turn   chan struct{} // holds one while a token is asked for
	looked *stamp        // of the file, by Logins.Changed, which guards it

	mu    sync.Mutex
	stamp stamp // of the file that login is from
	login *login
	// unwritten: the login is newer than the file, which could not be written.
	unwritten bool
	seen      []string // the newest tokens
	// fresh is a token that was got because the server refused the one before it, until it
	// has worked. If the server refuses it too, a further one is of no use.
	fresh string
}

func newSource(l *Logins, s Server) *source {
	return &source{logins: l, server: s, file: loginFile(s), web: newHTTPClient(s), turn: make(chan struct{}, 1)}
}

func (s *source) of(server Server) bool { return reflect.DeepEqual(s.server, server) }

func (s *source) secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// use makes l what later requests use. The caller holds the lock.
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

// current is the login as it is now, nil where there is none: another process, or its
// user, may have written the file since the last look.
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

// read reads the login anew. The caller holds the lock of s.
func (s *source) read(ctx context.Context) (*login, error) {
	now := s.logins.store.stamp(s.file)
	if s.unwritten && now == s.stamp {
		return s.login, nil
	}
	var l login
	switch err := s.logins.store.read(ctx, s.file, &l); {
	case errors.Is(err, fs.ErrNotExist):
		s.login, s.stamp = nil, stamp{}
		return nil, nil
	case errors.Is(err, errLost):
		return nil, &neededError{s.server.Name, err.Error()}
	case err != nil:
		return nil, &passingError{"the login cannot be read: " + err.Error()}
	}
	s.stamp, s.unwritten = now, false
	s.use(&l)
	return &l, nil
}

// token implements [tokens].
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
	fresh, err := s.renew(ctx, l, nil)
	if err != nil {
		if l.usable(0) {
			return l.Access, nil
		}
		return "", err
	}
	return fresh.Access, nil
}

// refused implements [tokens].
func (s *source) refused(ctx context.Context, token string, resp *http.Response) (string, error) {
	l, err := s.current(ctx)
	if err != nil {
		return "", err
	}
	c := readChallenge(resp.Header)
	missing := resp.StatusCode == http.StatusForbidden && c.missing
	switch {
	case l != nil && l.Access != "" && l.Access != token:
		return l.Access, nil // another process was faster
	case resp.StatusCode == http.StatusForbidden && !missing:
		return "", nil
	case s.server.machine():
		return s.machineToken(ctx, l, c, missing)
	case missing:
		return "", s.want(ctx, c.scopes)
	case l == nil || l.Access == "":
		return "", nil
	case s.untried(token) || l.Refresh == "" && l.Ended == "":
		return "", &neededError{s.server.Name, "the server refuses the token of the login"}
	}
	fresh, err := s.renew(ctx, l, nil)
	if err != nil {
		return "", err
	}
	s.setFresh(fresh.Access)
	return fresh.Access, nil
}

// untried reports whether a token is of no use: it is fresh, and has never worked.
func (s *source) untried(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return token != "" && token == s.fresh
}

// worked implements [tokens].
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

// machineToken gets a token after a refusal, unless the last one was got for that.
func (s *source) machineToken(ctx context.Context, l *login, c challenge, missing bool) (string, error) {
	if l != nil {
		more := union(l.Scopes, c.scopes)
		if missing && len(more) == len(l.Scopes) || !missing && s.untried(l.Access) {
			return "", &passingError{"the server refuses the token that oauth gets for it; check client_id and scopes"}
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

// want keeps the scopes that the server missed, for the next login.
func (s *source) want(ctx context.Context, scopes []string) error {
	needed := &neededError{s.server.Name, "the server wants more rights for this"}
	ctx, cancel := detached(ctx, refreshTime)
	defer cancel()
	unlock, err := s.logins.store.lock(ctx, s.file)
	if err != nil {
		return needed
	}
	defer unlock()
	l := &login{Server: s.server.Name, URL: s.server.URL}
	if err := s.logins.store.read(ctx, s.file, l); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return needed
	}
	if more := union(l.Wanted, scopes); len(more) > len(l.Wanted) && len(more) <= mostWanted {
		l.Wanted = more
		if err := s.logins.store.write(ctx, s.file, l); err != nil {
			s.logins.log.Warn("the scopes that a server wants cannot be kept", "server", s.server.Name, "err", err)
		}
	}
	return needed
}

// renew gets a fresh token in place of that of old, which another process may have done
// already. It ends with ctx; the request goes on, as its answer must be kept. c is what a
// server has asked for, of a machine's token.
func (s *source) renew(ctx context.Context, old *login, c *challenge) (*login, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type outcome struct {
		login *login
		err   error
	}
	done := make(chan outcome, 1)
	s.logins.refreshing.Go(func() { // ends within refreshTime; Logins.Close waits for it
		defer func() { <-s.turn }()
		ctx, cancel := detached(ctx, refreshTime)
		defer cancel()
		var o outcome
		if s.server.machine() {
			o.login, o.err = s.ask(ctx, old, c)
		} else {
			o.login, o.err = s.refresh(ctx, old)
		}
		done <- o
	})
	select {
	case o := <-done:
		return o.login, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refresh renews the login on disk, in the one process that holds its lock.
func (s *source) refresh(ctx context.Context, old *login) (*login, error) {
	unlock, err := s.logins.store.lock(ctx, s.file)
	if err != nil {
		return nil, &passingError{err.Error()}
	}
	defer unlock()
	s.mu.Lock()
	l, err := s.read(ctx) // whatever its stamp: two writes can have the same
	s.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case l == nil:
		return nil, &neededError{Server: s.server.Name}
	case l.Access != old.Access && l.usable(0):
		return l, nil
	case l.Ended != "":
		return nil, s.ended(l.Ended)
	case l.Refresh == "":
		return nil, s.ended("")
	}
	// A renewed token that cannot be kept is lost: a full disk shows here, before.
	if err := s.logins.store.write(ctx, s.file, l); err != nil {
		return nil, &passingError{"the login cannot be kept: " + err.Error()}
	}
	token, err := l.Endpoint.ask(ctx, s.web, nil, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {l.Refresh}})
	fresh := *l
	if refusal, ok := errors.AsType[*refusedError](err); ok && final(refusal.code) {
		fresh.Ended = refusal.code
	} else if err != nil {
		return nil, &passingError{err.Error() + "; the login is kept, mcpx tries again"}
	} else {
		fresh.take(token)
	}
	err = s.logins.store.write(ctx, s.file, &fresh)
	if err != nil {
		s.logins.log.Error("a renewed login cannot be kept", "server", s.server.Name, "err", err)
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

// take takes over what an authorization server gave.
func (l *login) take(token *oauth2.Token) {
	l.Access, l.Refresh, l.Expiry, l.Issued = token.AccessToken, token.RefreshToken, token.Expiry, time.Now()
	l.Scopes = scopesOf(token.Extra("scope"), l.Scopes)
	l.Ended = ""
}

// final reports a refusal that no further attempt changes.
func final(code string) bool {
	return slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client", "invalid_target"}, code)
}

// ended says why a login is over.
func (s *source) ended(code string) error {
	why := "the login has ended (" + code + ")"
	switch code {
	case "":
		why = "the login has ended, it came without a refresh token"
	case "invalid_client", "unauthorized_client":
		why = "the authorization server does not know mcpx any more (" + code + ")"
	}
	return &neededError{s.server.Name, why}
}

// ask gets a machine's token. It is in memory only.
func (s *source) ask(ctx context.Context, old *login, c *challenge) (*login, error) {
	now, err := s.current(ctx)
	if err != nil || now != old && now != nil {
		return now, err // another call was faster
	}
	l := &login{Server: s.server.Name, URL: s.server.URL}
	if old != nil {
		copied := *old
		l = &copied
	}
	if c != nil || l.Endpoint.Token == "" {
		if c == nil {
			c = &challenge{}
		}
		found, err := discover(ctx, s.web, s.server, *c, true)
		if err != nil {
			return nil, &passingError{err.Error()}
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

// askAs makes a request of a token as the client that the user has configured, which
// proves itself with a signature where that is its grant.
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

// endpointOf is where a client gets tokens of s.
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

// scopes are what a token is asked for: what the user configured, else the challenge,
// else what the server supports.
func (s Server) scopes(f *found, c challenge) []string {
	switch {
	case len(s.Scopes) > 0:
		return s.Scopes
	case len(c.scopes) > 0:
		return c.scopes
	}
	return f.scopes
}
