package logins

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/lru"
	"mcpx/internal/base/sanitize"
)

const (
	// maxExchanged is the largest number of exchanged tokens that mcpx keeps for one server.
	maxExchanged = 2048
	// unknownLife is how long mcpx keeps a token whose response does not say when it expires.
	unknownLife = 5 * time.Minute
)

// exchanges exchanges the tokens of callers (the clients of mcpx) for tokens that one server accepts (RFC 8693). For this, it sends the
// caller's token to the authorization server, and to nobody else. The tokens that it gets are in memory only.
type exchanges struct {
	logins *Logins
	server Server
	web    *http.Client

	mu   sync.Mutex
	at   map[string]*answer[*grantor]           // by the issuer of the callers' tokens; "" if the config has oauth.issuer
	kept *lru.Map[[sha256.Size]byte, exchanged] // the key is the digest of the caller's token
}

func newExchanges(l *Logins, s Server, web *http.Client) *exchanges {
	// An entry whose token is still being requested must not be evicted, because mcpx would request the token a second time.
	asking := func(e *exchanged) bool { return !e.answered() }
	at := make(map[string]*answer[*grantor])
	return &exchanges{logins: l, server: s, web: web, at: at, kept: lru.New[[sha256.Size]byte](maxExchanged, asking)}
}

// grantor is the authorization server at which mcpx exchanges the tokens of callers, with the scopes to request.
type grantor struct {
	endpoint endpoint
	scopes   []string
	since    time.Time // when it was discovered
}

// staysFor is how long mcpx keeps an authorization server that it has discovered, even if that server does not answer or did not
// issue the callers' tokens. Without this time, each request that cannot succeed would search for the authorization server again.
const staysFor = 10 * time.Second

// exchanged is a token that mcpx got in exchange for the token of a caller.
type exchanged struct {
	answer[string]
	until time.Time // when mcpx must request another token; set together with the answer
	// fresh is true if mcpx got this token because the server had refused an older one, and the server has not accepted this token
	// yet.
	fresh bool
}

// answer is the result of one request, such as a request for a token. All calls that need the result wait for the same answer.
type answer[T any] struct {
	done  chan struct{} // closed when the other fields are set
	value T
	err   error
}

func (a *answer[T]) wait(ctx context.Context) (value T, err error) {
	select {
	case <-a.done:
		return a.value, a.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

func (a *answer[T]) answered() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// Exchange returns a function that must be called once for each caller of s. The parameter principal of that function is the
// caller's ID, which begins with the issuer and a space. Its parameter subject returns the caller's own token, a JWT, from the
// caller's latest request. The result wrap makes a transport add the exchanged token to the caller's requests. The result secrets
// lists the tokens that must be removed from texts.
//
// mcpx sends the caller's token only to oauth.issuer or, if the config has none, to the issuer that issued the token. Whoever has
// this token can act as the caller at mcpx, so the server must not choose who gets it.
func (l *Logins) Exchange(s Server) func(principal string, subject func() string) (
	wrap func(http.RoundTripper) http.RoundTripper, secrets func() []string,
) {
	return newExchanges(l, s, newHTTPClient(s)).caller
}

func (x *exchanges) caller(principal string, subject func() string) (func(http.RoundTripper) http.RoundTripper, func() []string) {
	c := &exchanging{x, principal, subject}
	return func(base http.RoundTripper) http.RoundTripper { return &transport{base, x.server, c} }, c.secrets
}

// exchanging provides a [transport] with the exchanged tokens of one caller.
type exchanging struct {
	of        *exchanges
	principal string // the ID of the caller
	subject   func() string
}

// token returns the exchanged token of the caller, and requests it if there is none.
func (c *exchanging) token(ctx context.Context) (string, error) {
	if !c.of.server.safe() {
		return "", &passingError{"a caller's token is exchanged only for servers over https, or on this machine"}
	}
	return c.of.get(ctx, c.principal, c.subject(), "")
}

// refused requests another token after the server has answered 401. If the server says that the token lacks scopes, another token
// would not help, and refused returns an error. After any other 403 it returns "", so the request is not repeated.
func (c *exchanging) refused(ctx context.Context, token string, resp *http.Response) (string, error) {
	challenge := readChallenge(resp.Header)
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return c.of.get(ctx, c.principal, c.subject(), token)
	case challenge.missing:
		text := "the exchanged token does not have the scopes that the server needs for this; see oauth.scopes"
		if len(challenge.scopes) > 0 {
			text += " (it asks for " + strings.Join(challenge.scopes, " ") + ")"
		}
		return "", &passingError{text}
	}
	return "", nil
}

// worked notes that the server has accepted the token.
func (c *exchanging) worked(token string) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if e := c.of.kept.Find(sha256.Sum256([]byte(c.subject()))); e != nil && e.fresh && e.answered() && e.value == token {
		e.fresh = false
	}
}

func (c *exchanging) secrets() []string {
	subject := c.subject()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if e := c.of.kept.Find(sha256.Sum256([]byte(subject))); e != nil && e.answered() && e.value != "" {
		return []string{subject, e.value}
	}
	return []string{subject}
}

// get returns the token that mcpx gets in exchange for subject, the token of the caller with the ID principal. It uses a kept token
// if there is one. It requests another one if the kept token has expired or is refusedToken, the token that the server has just
// refused. But if the kept token itself replaced a refused one, and the server has never accepted it, get returns an error.
// Concurrent calls for the same subject share one request. refusedToken is empty if no token was refused.
func (x *exchanges) get(ctx context.Context, principal, subject, refusedToken string) (string, error) {
	key := sha256.Sum256([]byte(subject))
	x.mu.Lock()
	e := x.kept.Find(key)
	useless := e != nil && e.answered() && refusedToken != "" && e.value == refusedToken
	switch {
	case useless && e.fresh:
		x.mu.Unlock()
		return "", &passingError{"the server refuses the token that was exchanged for the caller's; see oauth.audience and oauth.scopes"}
	case e == nil || useless || e.answered() && !time.Now().Before(e.until):
		e = &exchanged{answer: answer[string]{done: make(chan struct{})}, fresh: useless}
		x.kept.Put(key, e)
		x.logins.refreshing.Go(func() { // ends within refreshTime; Logins.Close waits for it
			ctx, cancel := detached(ctx)
			defer cancel()
			x.ask(ctx, principal, subject, e)
			x.mu.Lock()
			if e.err != nil && x.kept.Find(key) == e {
				x.kept.Delete(key) // the next call tries again
			}
			close(e.done)
			x.mu.Unlock()
		})
	}
	x.mu.Unlock()
	return e.wait(ctx)
}

func (x *exchanges) ask(ctx context.Context, principal, subject string, e *exchanged) {
	issuer := ""
	if x.server.Issuer == "" {
		issuer, _, _ = strings.Cut(principal, " ")
	}
	g, err := x.find(ctx, issuer)
	if err != nil {
		e.err = &passingError{err.Error()}
		return
	}
	if x.server.Issuer == "" && g.endpoint.Issuer != issuer {
		x.forget(issuer, g)
		e.err = &passingError{"the server names the authorization server " + sanitize.Line(g.endpoint.Issuer, 200) +
			", which did not issue the caller's token; if it may get this token, set oauth.issuer of the server to it"}
		return
	}
	began := time.Now().Round(0) // without the monotonic clock, like the expiry of a login
	token, err := x.server.askAs(ctx, x.web, g.endpoint, g.scopes, url.Values{
		"grant_type":           {"urn:ietf:params:oauth:grant-type:token-exchange"},
		"subject_token":        {subject},
		"subject_token_type":   {"urn:ietf:params:oauth:token-type:access_token"},
		"requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
	})
	if err != nil {
		e.err = &passingError{"exchanging the caller's token: " + err.Error()}
		if _, refused := errors.AsType[*refusedError](err); !refused {
			x.forget(issuer, g)
		}
		return
	}
	e.value, e.until = token.AccessToken, began.Add(unknownLife)
	if !token.Expiry.IsZero() {
		e.until = token.Expiry.Round(0).Add(-min(10*time.Second, token.Expiry.Sub(began)/5))
	}
}

// forget drops the authorization server g, which was found for callers whose tokens come from this issuer. The next exchange for
// such a caller discovers the server again, as it may have moved. But if g was discovered less than staysFor ago, forget does
// nothing.
func (x *exchanges) forget(issuer string, g *grantor) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if at := x.at[issuer]; at != nil && at.value == g && time.Since(g.since) > staysFor {
		delete(x.at, issuer)
	}
}

// find returns the authorization server for the tokens of an issuer. It is discovered once for all callers of this issuer. It is
// discovered again only after an error, or after forget has dropped it.
func (x *exchanges) find(ctx context.Context, issuer string) (*grantor, error) {
	x.mu.Lock()
	at := x.at[issuer]
	mine := at == nil
	if mine {
		at = &answer[*grantor]{done: make(chan struct{})}
		x.at[issuer] = at
	}
	x.mu.Unlock()
	if !mine {
		return at.wait(ctx)
	}
	value, err := x.discover(ctx, issuer)
	x.mu.Lock()
	defer x.mu.Unlock()
	if at.value, at.err = value, err; err != nil {
		delete(x.at, issuer)
	}
	close(at.done)
	return value, err
}

func (x *exchanges) discover(ctx context.Context, issuer string) (*grantor, error) {
	var c challenge
	if x.server.Issuer == "" {
		var err error
		if c, _, err = askServer(ctx, x.server); err != nil {
			return nil, err
		}
	}
	f, err := discover(ctx, x.web, x.server, c, wanted{asked: true, issuer: issuer})
	if err != nil {
		return nil, err
	}
	who := client{ID: x.server.ClientID, Secret: x.server.ClientSecret}
	return &grantor{x.server.endpointOf(f, who), x.server.scopes(f, c), time.Now()}, nil
}
