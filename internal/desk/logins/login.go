package logins

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"mcpx/internal/base/netguard"
	"mcpx/internal/base/sanitize"
)

// Options are the options of [Logins.Login].
type Options struct {
	// Open shows the user the URL of the login page. It does not wait for the user.
	Open func(address string)
	// Pasted receives the URL to which the browser was sent after the login; the user pastes it if the browser cannot reach this
	// machine. Pasted may be nil. It may be closed when the user can paste nothing more.
	Pasted <-chan string
	// Again tells the user why a pasted URL was refused, and that another one can be pasted. If it is nil, the first URL that is
	// refused ends the login.
	Again func(reason error)
	// New makes mcpx register again with the authorization server, even if it has a stored registration.
	New bool
}

// Result describes a new login.
type Result struct {
	Issuer string
	Scopes []string
	// Renews reports whether the login has a refresh token.
	Renews bool
	Expiry time.Time // when the first access token expires; zero if unknown
	// Unsealed says why the stored login is not encrypted; nil if it is encrypted.
	Unsealed error
}

// Login lets the user log in to s with a browser, and stores the login. The authorization server sends the browser back to a
// port of this machine.
func (l *Logins) Login(ctx context.Context, s Server, o Options) (*Result, error) {
	b, err := l.begin(ctx, s, "")
	if err != nil {
		return nil, err
	}
	defer b.web.CloseIdleConnections()
	if o.New {
		known := client{}
		_ = l.store.read(ctx, clientFile(b.found.server.Issuer, ""), &known) // an error leaves known empty, and mcpx registers anyway
		b.forgotten = known.ID
	}
	who, listener, err := l.client(ctx, b)
	if err != nil {
		return nil, err
	}
	code := &codeFlow{server: s, found: b.found, endpoint: s.endpointOf(b.found, who), scopes: b.scopes, options: o, web: b.web}
	token, err := code.run(ctx, listener)
	if err != nil {
		return nil, err
	}
	made := &login{Server: s.Name, URL: s.URL, Endpoint: code.endpoint, Scopes: b.scopes}
	made.take(token)
	return l.keep(ctx, s, made)
}

// beginning is what [Logins.begin] has found out before the user sees the login page.
type beginning struct {
	server    Server
	web       *http.Client // the caller of begin closes its idle connections
	found     *found
	scopes    []string // to request
	forgotten string   // the ID of a registered client that must not be used again; may be empty
}

// begin finds out how to log in to a server: at which authorization server, with which endpoints, and for which scopes. redirect
// is the URL to which the browser will come back; empty means a port of this machine.
func (l *Logins) begin(ctx context.Context, s Server, redirect string) (*beginning, error) {
	if err := l.refuses(s); err != nil {
		return nil, err
	}
	before := &login{}
	if err := l.store.read(ctx, loginFile(s), before); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.log.Warn("the login before cannot be read", "server", s.Name, "err", err)
	}
	if before.Principal != s.Principal {
		before = &login{}
	}
	b := &beginning{server: s, web: newHTTPClient(s)}
	c, asked, err := askServer(ctx, s)
	if err == nil {
		fits := func(meta *oauthex.AuthServerMeta) error { return l.fits(s, meta, redirect) }
		b.found, err = discover(ctx, b.web, s, c, wanted{asked, s.boundTo(before.Endpoint), fits})
	}
	if err == nil {
		err = s.movedFrom(before.Endpoint, b.found.server.Issuer)
	}
	if err != nil {
		b.web.CloseIdleConnections()
		return nil, err
	}
	if strings.HasSuffix(before.Ended, "_client") {
		b.forgotten = before.Endpoint.Client.ID
	}
	b.scopes = s.scopes(b.found, c)
	if len(before.Wanted) > 0 { // the new login must be able to do all that the old one could
		b.scopes = union(union(before.Scopes, b.scopes), before.Wanted)
	}
	if slices.Contains(b.found.server.ScopesSupported, "offline_access") {
		b.scopes = union(b.scopes, []string{"offline_access"})
	}
	return b, nil
}

// fits returns an error if users cannot log in to s at an authorization server. redirect is the parameter of begin.
func (l *Logins) fits(s Server, meta *oauthex.AuthServerMeta, redirect string) error {
	switch {
	case !isPage(meta.AuthorizationEndpoint):
		return errors.New("the authorization server has no page to log in on over https")
	// MCP's specification forbids to go on without PKCE.
	case !slices.Contains(meta.CodeChallengeMethodsSupported, pkce):
		return fmt.Errorf("the authorization server %s does not say that it supports PKCE with %s (code_challenge_methods_supported)",
			sanitize.Line(meta.Issuer, 200), pkce)
	}
	_, ok := s.unregistered(meta)
	if !ok && meta.RegistrationEndpoint == "" && l.store.stamp(clientFile(meta.Issuer, redirect)).absent {
		return noRegistration(meta, redirect)
	}
	return nil
}

// isPage reports whether a browser may be sent to this address to log in. It checks the scheme itself, because netguard.Safe also
// accepts the URLs of WebSockets.
func isPage(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && netguard.Safe(address)
}

// boundTo returns the issuer of the only authorization server that may get the secret of the configured client: the one at which
// the client was used before. known is the endpoint of the previous login; it is zero if there was none. boundTo returns "" if the
// client was not used before. It also does so if the user has set oauth.issuer, and so has said where the client belongs.
func (s Server) boundTo(known endpoint) string {
	if s.ClientID == "" || s.Issuer != "" || known.Client.ID != s.ClientID {
		return ""
	}
	return known.Issuer
}

// movedFrom returns an error if the configured client is bound to another authorization server than issuer (see boundTo).
func (s Server) movedFrom(known endpoint, issuer string) error {
	if bound := s.boundTo(known); bound == "" || bound == issuer {
		return nil
	}
	return &hintError{
		fmt.Sprintf("%s now names the authorization server %s, but the client in oauth.client_id was used at %s", s.Name,
			sanitize.Line(issuer, 200), sanitize.Line(known.Issuer, 200)),
		"if the client is registered at the new one too, set oauth.issuer of the server to it",
	}
}

// refuses returns nil if a login to s is possible; otherwise its error says why not.
func (l *Logins) refuses(s Server) error {
	switch {
	case s.machine():
		return fmt.Errorf("%s needs no login: mcpx gets its tokens itself (oauth.grant is %s)", s.Name, s.Grant)
	case l.store.nowhere():
		return errors.New("there is no user configuration folder to keep a login in")
	case !s.safe():
		return errors.New("a login needs a server over https, or on this machine: otherwise the token would be sent unencrypted")
	case s.authorized():
		return &hintError{
			s.Name + " has an Authorization header, which a login would not replace",
			"remove it from headers of the server",
		}
	}
	return nil
}

// keep stores a new login in place of the old one. It does so even if ctx ends, because the user has already completed the login.
// If the config has no scopes for s, keep copies scopes from the old login's Wanted to the new one's, so that later logins request
// them again. It copies only scopes that the new login was granted.
func (l *Logins) keep(ctx context.Context, s Server, made *login) (*Result, error) {
	ctx, cancel := detached(ctx)
	defer cancel()
	unlock, err := l.store.lock(ctx, loginFile(s))
	if err != nil {
		return nil, err
	}
	defer unlock()
	var before login
	if len(s.Scopes) == 0 && l.store.read(ctx, loginFile(s), &before) == nil && before.Principal == made.Principal {
		made.Wanted = slices.DeleteFunc(before.Wanted, func(scope string) bool { return !slices.Contains(made.Scopes, scope) })
	}
	if err := l.store.write(ctx, loginFile(s), made); err != nil {
		return nil, fmt.Errorf("the login cannot be stored: %w", err)
	}
	return &Result{
		Issuer: made.Endpoint.Issuer, Scopes: made.Scopes, Renews: made.Refresh != "", Expiry: made.Expiry,
		Unsealed: l.store.whyUnsealed(),
	}, nil
}

// questions are the HTTP methods and bodies of requests without a token. askServer sends one after the other until the server refuses
// one (401 or 403). Many servers allow initialize without a token, so tools/list follows. The GET is for servers with the HTTP+SSE
// transport.
var questions = [][2]string{
	{http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcpx","version":"1"}}}`},
	{http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`},
	{http.MethodGet, ""},
}

// handshake has the headers of a request that opens a WebSocket (RFC 6455 section 4.1; the key is from the RFC's example).
// askServer sends the request to find out whether a WebSocket server asks for a login. If the connection opens, askServer closes
// it at once.
var handshake = http.Header{
	"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
	"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Protocol": {"mcp"},
}

// askServer finds out whether a server asks for a login, and returns the server's challenge. It sends the configured headers,
// but no token of a login.
func askServer(ctx context.Context, s Server) (c challenge, asked bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, netguard.RequestTime)
	defer cancel()
	web := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask, session := questions, ""
	address := overHTTP(s.URL)
	socket := address != s.URL
	if socket {
		ask = [][2]string{{http.MethodGet, ""}}
	}
	send := func(method, body string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		for name, value := range s.Headers {
			req.Header.Set(name, value)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if socket {
			maps.Copy(req.Header, handshake)
		}
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := web.Do(req)
		if err != nil {
			return nil, fmt.Errorf("asking the server: %w", explain(err))
		}
		resp.Body.Close()
		return resp, nil
	}
	for _, question := range ask {
		resp, err := send(question[0], question[1])
		if err != nil {
			return c, false, err
		}
		if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
			c, asked = readChallenge(resp.Header), true
			break
		}
		session = cmp.Or(session, resp.Header.Get("Mcp-Session-Id"))
	}
	if session != "" {
		_, _ = send(http.MethodDelete, "") // if this fails, the server ends the session after some time
	}
	return c, asked, nil
}

// codeFlow is one login in a browser: an OAuth authorization code flow with PKCE.
type codeFlow struct {
	server   Server
	found    *found
	endpoint endpoint
	scopes   []string
	options  Options
	web      *http.Client
}

// run shows the user the login page, waits for the redirect, and exchanges the code in the redirect for a token. It closes
// the listener.
func (f *codeFlow) run(ctx context.Context, listener net.Listener) (*oauth2.Token, error) {
	redirect := redirectOf(listener)
	back := newCallback(rand.Text(), f.server.Name)
	stop := back.serve(listener)
	defer stop()

	verifier := oauth2.GenerateVerifier()
	f.options.Open(f.address(redirect, back.state, verifier))

	answer, err := back.wait(ctx, f.options.Pasted, f.options.Again)
	if err != nil {
		return nil, err
	}
	token, err := f.exchange(ctx, answer, codeParams(answer, redirect, verifier))
	back.finish(err)
	return token, err
}

// codeParams returns the parameters of the request that exchanges the code in a redirect for a token.
func codeParams(answer url.Values, redirect, verifier string) url.Values {
	return url.Values{
		"grant_type": {"authorization_code"}, "code": {answer.Get("code")},
		"redirect_uri": {redirect}, "code_verifier": {verifier},
	}
}

// address returns the URL of the login page, with the parameters of the authorization code flow. verifier is the secret of
// PKCE.
func (f *codeFlow) address(redirect, state, verifier string) string {
	config := oauth2.Config{
		ClientID: f.endpoint.Client.ID, RedirectURL: redirect, Scopes: f.scopes,
		Endpoint: oauth2.Endpoint{AuthURL: f.found.server.AuthorizationEndpoint},
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", f.endpoint.Resource)}
	if f.endpoint.Audience != "" {
		options = append(options, oauth2.SetAuthURLParam("audience", f.endpoint.Audience))
	}
	if slices.Contains(f.scopes, "offline_access") {
		options = append(options, oauth2.SetAuthURLParam("prompt", "consent")) // required by OpenID Connect Core, section 11
	}
	return config.AuthCodeURL(state, options...)
}

// exchange checks the redirect, and exchanges its code for a token. answer is the query of the redirect; params are the
// parameters of the request for the token.
func (f *codeFlow) exchange(ctx context.Context, answer, params url.Values) (*oauth2.Token, error) {
	// RFC 9207: a redirect from another authorization server is refused before anything else in it is used.
	issuer, given := answer.Get("iss"), answer.Has("iss")
	if given && issuer != f.endpoint.Issuer || !given && f.found.server.AuthorizationResponseIssParameterSupported {
		return nil, errors.New("the redirect came from another authorization server (iss); nothing was sent to it")
	}
	if code := answer.Get("error"); code != "" {
		text := "the authorization server says " + sanitize.Line(code, 60)
		if description := answer.Get("error_description"); description != "" {
			text += ": " + sanitize.Line(description, 200)
		}
		return nil, errors.New(text)
	}
	if answer.Get("code") == "" {
		return nil, errors.New("the redirect has no code")
	}
	token, err := f.endpoint.ask(ctx, f.web, nil, params)
	if refusal, ok := errors.AsType[*refusedError](err); ok && strings.HasSuffix(refusal.code, "_client") {
		return nil, &hintError{err.Error(), "mcpx login " + f.server.Name + " --new"}
	}
	return token, err
}

// Logout revokes the tokens of s and deletes the login. If it cannot revoke the tokens, it still deletes the login, and revokeErr
// says why. missing means that there was no login.
func (l *Logins) Logout(ctx context.Context, s Server) (missing bool, revokeErr, err error) {
	unlock, err := l.store.lock(ctx, loginFile(s))
	if err != nil {
		return false, nil, err
	}
	defer unlock()
	var old login
	switch err := l.store.read(ctx, loginFile(s), &old); {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil, nil
	case err != nil:
		revokeErr = err
	default:
		revokeErr = old.revoke(ctx, newHTTPClient(s))
	}
	return false, revokeErr, l.store.remove(loginFile(s))
}

// revoke revokes the tokens of the login at the authorization server (RFC 7009).
func (l *login) revoke(ctx context.Context, web *http.Client) error {
	if l.Access == "" && l.Refresh == "" {
		return nil
	}
	if l.Endpoint.Revoke == "" {
		return errors.New("the authorization server does not support revocation; its tokens stay valid until they expire")
	}
	for _, token := range [][2]string{{l.Refresh, "refresh_token"}, {l.Access, "access_token"}} {
		if token[0] == "" {
			continue
		}
		form := url.Values{"token": {token[0]}, "token_type_hint": {token[1]}}
		who := l.Endpoint.Client
		basic := l.Endpoint.style() != oauth2.AuthStyleInParams
		if !basic {
			form.Set("client_id", who.ID)
			if who.Secret != "" {
				form.Set("client_secret", who.Secret)
			}
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.Endpoint.Revoke, strings.NewReader(form.Encode()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if basic {
			req.SetBasicAuth(url.QueryEscape(who.ID), url.QueryEscape(who.Secret))
		}
		resp, err := web.Do(req)
		if err != nil {
			return explain(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New("the authorization server answered " + resp.Status)
		}
	}
	return nil
}
