package logins

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"mcpx/internal/base/state"
)

// NewOfPrincipals returns the logins of principals in the folder dir. The files are encrypted with a key that is derived from
// secret. The methods of the result need a [Server] whose field Principal is set.
func NewOfPrincipals(dir string, secret *state.Secret, log *slog.Logger) *Logins {
	l := New(dir, log)
	l.store = &store{dir: dir, log: l.log, strict: true, key: secret.Key("mcpx logins of principals 1")}
	return l
}

// NewShared returns the logins of principals that the replicas of a cluster share. records stores the logins, and must encrypt
// them. The methods of the result need a [Server] whose field Principal is set.
func NewShared(records state.Followed, log *slog.Logger) *Logins {
	l := New("", log)
	l.store = &shared{records: records}
	return l
}

// Held returns the ID of a principal's login at s, or "" if the principal has no usable login. A login is also not usable if it
// lacks scopes for which the server has asked. err is not nil if the login cannot be read at the moment.
func (l *Logins) Held(ctx context.Context, s Server) (id string, err error) {
	now, err := l.source(s).current(ctx)
	if _, needed := errors.AsType[*neededError](err); needed {
		return "", nil
	}
	if err != nil || now == nil || now.Ended != "" || now.Access == "" || !now.usable(0) && now.Refresh == "" {
		return "", err
	}
	if slices.ContainsFunc(now.Wanted, func(scope string) bool { return !slices.Contains(now.Scopes, scope) }) {
		return "", nil // the server has asked for more scopes than the login has
	}
	return now.ID, nil
}

// WithID returns wrap and secrets for the principal's login that has this ID. wrap makes a transport add the login's tokens to
// requests; secrets lists the tokens that must be removed from texts. Once the login has ended or was replaced, the transport
// returns an error and sends no request.
func (l *Logins) WithID(s Server, id string) (wrap func(http.RoundTripper) http.RoundTripper, secrets func() []string) {
	src := l.source(s)
	return func(base http.RoundTripper) http.RoundTripper { return &transport{base, s, &oneLogin{src, id}} }, src.secrets
}

// Needed returns a function that wraps a transport. The transport adds the tokens of the login of the user who runs mcpx. Without
// such a login, the transport returns an error and sends no request.
func (l *Logins) Needed(s Server) func(base http.RoundTripper) http.RoundTripper {
	src := l.source(s)
	return func(base http.RoundTripper) http.RoundTripper { return &transport{base, s, &oneLogin{src, ""}} }
}

// oneLogin provides a [transport] with the tokens of one login. If server.Principal is set, it is the login of this principal
// that has this id. Otherwise it is the current login of the user who runs mcpx, whatever its ID is.
type oneLogin struct {
	*source
	id string
}

// token returns the token for the next request, or an error if the login is no longer the current one.
func (o *oneLogin) token(ctx context.Context) (string, error) {
	if err := o.check(ctx); err != nil {
		return "", err
	}
	token, err := o.source.token(ctx)
	if err == nil && token == "" {
		err = o.needed("")
	}
	return token, err
}

// refused returns another token after the server has refused one, or an error if the login is no longer the current one.
func (o *oneLogin) refused(ctx context.Context, token string, resp *http.Response) (string, error) {
	if err := o.check(ctx); err != nil {
		return "", err
	}
	return o.source.refused(ctx, token, resp)
}

// check returns an error if there is no login any more. If the login is a principal's, it must also have the ID o.id.
func (o *oneLogin) check(ctx context.Context) error {
	now, err := o.current(ctx)
	switch {
	case err != nil:
		return err
	case now == nil:
		return o.needed("")
	case now.ID != o.id && o.server.Principal != "": // the session with the server belongs to the account of the old login
		return o.needed("there was another login since")
	}
	return nil
}

// Pending is a login that has begun and is not finished: the user is at the login page, from which the browser will come back
// to a page of mcpx. It can be encoded as JSON, and contains secrets.
type Pending struct {
	Endpoint  endpoint `json:"endpoint"`
	Authorize string   `json:"authorize"` // the address of the login page
	NamesSelf bool     `json:"iss"`       // the browser must come back with the issuer in the URL (RFC 9207)
	Scopes    []string `json:"scopes"`
	Redirect  string   `json:"redirect"`
	Verifier  string   `json:"verifier"`
	Name      string   `json:"name"` // the principal's name; set by the caller of Begin
}

// Begin prepares a login of the principal s.Principal or, if that is empty, of the user who runs mcpx. The caller may add the
// principal's name to the result. The authorization server will send the browser back to the URL redirect.
func (l *Logins) Begin(ctx context.Context, s Server, redirect string) (*Pending, error) {
	b, err := l.begin(ctx, s, redirect)
	if err != nil {
		return nil, err
	}
	defer b.web.CloseIdleConnections()
	who, err := l.webClient(ctx, b, redirect)
	if err != nil {
		return nil, err
	}
	meta := b.found.server
	return &Pending{
		Endpoint: s.endpointOf(b.found, who), Authorize: meta.AuthorizationEndpoint,
		NamesSelf: meta.AuthorizationResponseIssParameterSupported, Scopes: b.scopes,
		Redirect: redirect, Verifier: rand.Text() + rand.Text(),
	}, nil
}

// webClient returns the OAuth client for logins after which the browser comes back to the URL redirect. The client is chosen in the
// same order as in the method client.
func (l *Logins) webClient(ctx context.Context, b *beginning, redirect string) (client, error) {
	s, meta := b.server, b.found.server
	if own, ok := s.unregistered(meta); ok {
		return own, nil
	}
	var known client
	file := clientFile(meta.Issuer, redirect)
	err := l.store.read(ctx, file, &known)
	if err == nil && known.ID != b.forgotten && known.Redirect == redirect && !known.ends() {
		return known, nil
	}
	if meta.RegistrationEndpoint == "" {
		return client{}, noRegistration(meta, redirect)
	}
	kind := "web"
	if strings.HasPrefix(redirect, "http://") { // a redirect to this machine
		kind = "native"
	}
	made, err := register(ctx, b.web, meta, redirect, kind)
	if err != nil {
		return made, err
	}
	unlock, err := l.store.lock(ctx, file)
	if err != nil {
		return made, err
	}
	defer unlock()
	return made, l.store.write(ctx, file, made)
}

// Address returns the URL of the login page, in which the OAuth parameter state has the given value.
func (p *Pending) Address(state string) string {
	return p.flow(Server{}).address(p.Redirect, state, p.Verifier)
}

func (p *Pending) flow(s Server) *codeFlow {
	meta := &oauthex.AuthServerMeta{
		AuthorizationEndpoint: p.Authorize, AuthorizationResponseIssParameterSupported: p.NamesSelf,
	}
	return &codeFlow{server: s, found: &found{server: meta}, endpoint: p.Endpoint, scopes: p.Scopes}
}

// Finish completes the login p. The parameter answer is the query with which the browser came back; it contains a code, which
// Finish exchanges for tokens. Finish stores the tokens in place of the principal's old login, if there was one. It also revokes
// the old login, unless the authorization server has given one of its tokens again: the new login would end too.
func (l *Logins) Finish(ctx context.Context, s Server, p *Pending, answer url.Values) (*Result, error) {
	flow := p.flow(s)
	flow.web = newHTTPClient(s)
	defer flow.web.CloseIdleConnections()
	token, err := flow.exchange(ctx, answer, codeParams(answer, p.Redirect, p.Verifier))
	if err != nil {
		return nil, err
	}
	made := &login{Server: s.Name, URL: s.URL, Endpoint: p.Endpoint, Scopes: p.Scopes, ID: rand.Text(), Principal: s.Principal}
	made.begun = begun{p.Name, p.Redirect, time.Now(), s.AllowPrivate}
	made.take(token)
	var before login
	old := l.store.read(ctx, loginFile(s), &before)
	result, err := l.keep(ctx, s, made)
	if err != nil {
		return nil, err
	}
	givenAgain := before.Access == made.Access || before.Refresh != "" && before.Refresh == made.Refresh
	if old == nil && before.Principal == s.Principal && !givenAgain {
		_ = before.revoke(ctx, flow.web) // an error does no harm: nobody uses the old login, and it expires
	}
	return result, nil
}

// Revoke revokes the login at s at the authorization server, and deletes it. existed is false if there is no login (another
// process may just have ended it), or if it cannot be locked or deleted. If the login cannot be revoked, err says why; it is
// deleted nevertheless.
func (l *Logins) Revoke(ctx context.Context, s Server) (existed bool, err error) {
	if errors.Is(l.store.read(ctx, loginFile(s), &login{}), fs.ErrNotExist) {
		return false, nil // there is no login
	}
	missing, revoked, err := l.Logout(ctx, s)
	return !missing && err == nil, errors.Join(revoked, err)
}
