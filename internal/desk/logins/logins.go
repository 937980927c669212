// Package logins logs in to upstream MCP servers with OAuth. It finds the authorization server of an upstream, gets and stores
// tokens, and adds them to requests. Only a login ([Logins.Login], or [Logins.Begin] and [Logins.Finish]) needs the user; a running
// mcpx uses and renews stored logins without the user.
package logins

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/lru"
	"mcpx/internal/base/netguard"
)

// These are the OAuth grants by which mcpx itself gets tokens, without a user. Any other value of Grant means the authorization code
// grant, with a user.
const (
	ClientCredentials = "client_credentials"
	PrivateKeyJWT     = "private_key_jwt" // client credentials, with a signed assertion instead of a secret
)

// Server is the configuration of an upstream that may need a login.
type Server struct {
	Name, URL string
	// URLs has the addresses of all instances of the server, if there are several. mcpx sends the same tokens to all of them.
	URLs []string
	// Headers are the configured headers for the server. mcpx also sends them when it asks the server whether it needs a login.
	Headers map[string]string
	// Principal is the ID of the principal whose login at the server is used. If it is empty, the login of the user who runs mcpx is
	// used ([Logins.Login]).
	Principal string
	conf.OAuth
}

// authorized reports whether the configured headers include Authorization.
func (s Server) authorized() bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// machine reports whether mcpx itself is the owner of the tokens, so that no user logs in.
func (s Server) machine() bool { return s.Grant == ClientCredentials || s.Grant == PrivateKeyJWT }

// safe reports whether tokens may be sent to the server: all its addresses are https, or on this machine.
func (s Server) safe() bool {
	return netguard.Safe(s.URL) && !slices.ContainsFunc(s.URLs, func(address string) bool { return !netguard.Safe(address) })
}

// Logins has logins at servers: the logins of the user who runs mcpx or, if it was made with [NewOfPrincipals] or [NewShared],
// the logins of principals. It is safe for concurrent use. Several processes may use the same folder.
type Logins struct {
	store keeper
	log   *slog.Logger

	mu      sync.Mutex
	sources *lru.Map[string, source] // by the name of the login's file

	refreshing sync.WaitGroup
}

// New returns the logins in the folder dir. The folder need not exist. If dir is empty, there are no logins. log may be nil.
func New(dir string, log *slog.Logger) *Logins {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Logins{store: &store{dir: dir, log: log}, log: log, sources: lru.New[string](maxSources, (*source).busy)}
}

// maxSources is how many sources the map keeps (see [lru.Map]); a source provides the tokens of one login. The limit is needed
// because each principal has a source for each server, even without a login. A source that was dropped is made again from the file
// of the login.
const maxSources = 2000

// Close waits until all token requests have ended, but not longer than the timeout. If mcpx ended before the response to the
// renewal of a login, the login could be lost.
func (l *Logins) Close(timeout time.Duration) {
	done := make(chan struct{})
	go func() { // ends when all token requests have ended; they have a timeout
		l.refreshing.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(timeout):
	}
}

// Authorize returns wrap, which makes a transport add the tokens of s to requests, and secrets, which lists the tokens that must be
// removed from texts. wrap and secrets are nil if the config has an Authorization header for s, if there is no folder for logins,
// or if requests to s would not be encrypted.
func (l *Logins) Authorize(s Server) (wrap func(http.RoundTripper) http.RoundTripper, secrets func() []string) {
	if s.authorized() || l.store.nowhere() || !s.safe() {
		return nil, nil
	}
	src := l.source(s)
	return func(base http.RoundTripper) http.RoundTripper { return &transport{base, s, src} }, src.secrets
}

// Holds reports whether a login at s is stored. Even a stored login may have ended; then it cannot be used.
func (l *Logins) Holds(s Server) bool {
	return !l.store.nowhere() && !l.store.stamp(loginFile(s)).absent
}

// Changed returns the names of those servers whose login was created, renewed or deleted since the last call of Changed, by this
// process or another one. A server is known to Changed only after a method such as Authorize was called for it.
func (l *Logins) Changed() (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for file, src := range l.sources.All() {
		now := l.store.stamp(file)
		if src.looked != nil && *src.looked != now {
			names = append(names, src.server.Name)
		}
		src.looked = &now
	}
	return names
}

func (l *Logins) source(s Server) *source {
	l.mu.Lock()
	defer l.mu.Unlock()
	file := loginFile(s)
	src := l.sources.Find(file)
	if src == nil || !reflect.DeepEqual(src.server, s) {
		src = newSource(l, s)
		l.sources.Put(file, src)
	}
	return src
}

// neededError is the error of a request that needs a login. Its text tells the user to log in.
type neededError struct {
	Server string
	// Why is the reason why the existing login cannot be used; empty if there is no login.
	Why         string
	ofPrincipal bool // the login is a principal's, so the text does not say how to log in
}

func (e *neededError) Error() string {
	text := "needs mcpx login " + e.Server
	if e.ofPrincipal {
		text = "needs the user's login"
	}
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// NotSent tells package transport that the server has not executed the request: mcpx did not send it, or the server refused its
// token.
func (e *neededError) NotSent() bool { return true }

// passingError says why there is no usable token at the moment. Logging in again would not help.
type passingError struct{ Reason string }

func (e *passingError) Error() string { return e.Reason }

// passing returns the passingError with the text and the hint of err.
func passing(err error) *passingError {
	text := err.Error()
	if advised, ok := errors.AsType[*hintError](err); ok {
		text += "; " + advised.hint
	}
	return &passingError{text}
}

// NotSent tells package transport that the server has not executed the request, as the method of neededError does.
func (e *passingError) NotSent() bool { return true }

// detached returns a context that has the values of ctx, but ends only after refreshTime, even if ctx ends earlier. It is for work
// that must be completed even if the caller gives up.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), refreshTime)
}
