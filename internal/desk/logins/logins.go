// Package logins logs in to upstreams: it finds the authorization server of an upstream,
// gets and keeps tokens, and puts them on requests. A login by a user is made by
// [Logins.Login] alone; what serves only uses it.
package logins

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/netguard"
)

// The grants that mcpx gets tokens with.
const (
	AuthorizationCode = "authorization_code"
	ClientCredentials = "client_credentials"
	PrivateKeyJWT     = "private_key_jwt" // client credentials, proved with a signature
)

// Server is an upstream that may want a login, as its user has configured it.
type Server struct {
	Name, URL string
	// URLs are the addresses of all instances, where there are several: tokens for URL go to
	// them too.
	URLs []string
	// Headers go with the request that asks the server whether it wants a login.
	Headers map[string]string
	conf.OAuth
}

// authorized reports whether the configuration has the Authorization header itself.
func (s Server) authorized() bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// machine reports whether the server's tokens need no user.
func (s Server) machine() bool { return s.Grant == ClientCredentials || s.Grant == PrivateKeyJWT }

// safe reports whether tokens may go to all addresses of the server.
func (s Server) safe() bool {
	return netguard.Safe(s.URL) && !slices.ContainsFunc(s.URLs, func(address string) bool { return !netguard.Safe(address) })
}

// Logins are the tokens of one user's servers. Safe for concurrent use; several processes
// may use one folder.
type Logins struct {
	store *store
	log   *slog.Logger

	mu      sync.Mutex
	sources map[string]*source // by the name of the login's file

	refreshing sync.WaitGroup
}

// New returns the logins that are kept in the folder dir, which may not exist yet. Empty:
// none are kept. log may be nil.
func New(dir string, log *slog.Logger) *Logins {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Logins{store: newStore(dir, log), log: log, sources: make(map[string]*source)}
}

// Close waits for token requests under way, at most so long: an answer that nobody
// keeps can cost the login.
func (l *Logins) Close(within time.Duration) {
	done := make(chan struct{})
	go func() { // ends with the last request, which has a time of its own
		l.refreshing.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(within):
	}
}

// Authorize returns what puts the tokens of s on requests, and the tokens that were seen so
// far, to be struck out of texts. Both are nil where the requests have an Authorization
// header of their own, or would go over the network in the clear.
func (l *Logins) Authorize(s Server) (wrap func(http.RoundTripper) http.RoundTripper, secrets func() []string) {
	if s.authorized() || l.store.dir == "" || !s.safe() {
		return nil, nil
	}
	src := l.source(s)
	return func(base http.RoundTripper) http.RoundTripper { return &transport{base, s, src} }, src.secrets
}

// Changed returns the servers whose logins were made, renewed or deleted since the last
// call, by any process.
func (l *Logins) Changed() (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for file, src := range l.sources {
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
	src := l.sources[file]
	if src == nil || !src.of(s) {
		src = newSource(l, s)
		l.sources[file] = src
	}
	return src
}

// neededError says that a user must log in. Its text is for that user.
type neededError struct {
	Server string
	// Why the login that was there does not do; empty if there was none.
	Why string
}

func (e *neededError) Error() string {
	text := "needs mcpx login " + e.Server
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// NotSent marks errors after which the request was surely not executed.
func (e *neededError) NotSent() bool { return true }

// passingError says why there is no token now, though the login stays good.
type passingError struct{ Reason string }

func (e *passingError) Error() string { return e.Reason }

// NotSent marks errors after which the request was surely not executed.
func (e *passingError) NotSent() bool { return true }

// detached is ctx without its end, for at most d: what must not be left half done goes on
// when its caller does not.
func detached(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d)
}
