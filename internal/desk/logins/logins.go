// Package logins logs in to upstreams: it finds the authorization server of an upstream, gets and stores tokens, and adds
// them to requests. Only [Logins.Login] needs the user; a serving mcpx uses and renews the stored logins.
package logins

import (
	"context"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/netguard"
)

// The grants by which mcpx gets tokens.
const (
	AuthorizationCode = "authorization_code"
	ClientCredentials = "client_credentials"
	PrivateKeyJWT     = "private_key_jwt" // client credentials with a signature in place of a secret
)

// Server is an upstream that may need a login, as it is configured.
type Server struct {
	Name, URL string
	// URLs are the addresses of all instances, if there are several. Tokens for URL are sent to them too.
	URLs []string
	// Headers are sent with the requests that find out whether the server needs a login.
	Headers map[string]string
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

// machine reports whether mcpx gets the tokens without a user.
func (s Server) machine() bool { return s.Grant == ClientCredentials || s.Grant == PrivateKeyJWT }

// safe reports whether tokens may be sent to all addresses of the server.
func (s Server) safe() bool {
	return netguard.Safe(s.URL) && !slices.ContainsFunc(s.URLs, func(address string) bool { return !netguard.Safe(address) })
}

// Logins has the tokens for the servers of one user. Safe for concurrent use; several processes may share a folder.
type Logins struct {
	store *store
	log   *slog.Logger

	mu      sync.Mutex
	sources map[string]*source // by the name of the login's file

	refreshing sync.WaitGroup
}

// New returns the logins in the folder dir, which need not exist; with an empty dir there are none. log may be nil.
func New(dir string, log *slog.Logger) *Logins {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Logins{store: &store{dir: dir, log: log}, log: log, sources: make(map[string]*source)}
}

// Close waits for open token requests, but no longer than within: losing a renewed token can lose the login.
func (l *Logins) Close(within time.Duration) {
	done := make(chan struct{})
	go func() { // ends with the last request, which has a timeout
		l.refreshing.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(within):
	}
}

// Authorize returns the transport that adds the tokens of s to requests, and a func that lists the tokens seen so far, to
// strike them out of texts. Both are nil if the config has an Authorization header for s, or requests to s are not encrypted.
func (l *Logins) Authorize(s Server) (wrap func(http.RoundTripper) http.RoundTripper, secrets func() []string) {
	if s.authorized() || l.store.dir == "" || !s.safe() {
		return nil, nil
	}
	src := l.source(s)
	return func(base http.RoundTripper) http.RoundTripper { return &transport{base, s, src} }, src.secrets
}

// Changed returns the names of servers whose logins were created, renewed or deleted, by any process, since the last call.
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
	if src == nil || !reflect.DeepEqual(src.server, s) {
		src = newSource(l, s)
		l.sources[file] = src
	}
	return src
}

// neededError tells the user to log in.
type neededError struct {
	Server string
	// Why the login cannot be used; empty if there is none.
	Why string
}

func (e *neededError) Error() string {
	text := "needs mcpx login " + e.Server
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// NotSent implements the interface by which upstreams know that the request was not sent.
func (e *neededError) NotSent() bool { return true }

// passingError says why there is no token now; logging in again would not help.
type passingError struct{ Reason string }

func (e *passingError) Error() string { return e.Reason }

// NotSent implements the interface by which upstreams know that the request was not sent.
func (e *passingError) NotSent() bool { return true }

// detached is ctx without its cancellation, with the timeout d, for what must be completed even if the caller gives up.
func detached(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d)
}
