package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/netguard"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/hosted/audit"
	"mcpx/internal/hosted/identity"
)

const (
	// maxUser is the maximum length, in bytes, of the JSON of a user. The JSON becomes part of access tokens, which clients send in
	// headers.
	maxUser       = 4 << 10
	discoveryTime = time.Hour // how long the issuer's metadata is cached
)

// oidcClient logs users in at the OpenID issuer, as a client of OpenID Connect.
type oidcClient struct {
	o        *Options
	callback string
	web      *http.Client
	keys     *identity.Keys

	mu     sync.Mutex
	found  *provider
	until  time.Time
	warned bool // whether the log says already that the issuer gives no refresh tokens
}

// provider is the metadata of an issuer (OpenID Connect Discovery 1.0, section 3).
type provider struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Keys          string   `json:"jwks_uri"`
	UserInfo      string   `json:"userinfo_endpoint"`
	Methods       []string `json:"token_endpoint_auth_methods_supported"`
	Scopes        []string `json:"scopes_supported"`
	SendsIssuer   bool     `json:"authorization_response_iss_parameter_supported"`
}

func newOIDCClient(o *Options, callback string) *oidcClient {
	reach := netguard.Reach{Loopback: netguard.LoopbackURL(o.Issuer), Private: o.AllowPrivate, Key: "auth.front.allow_private"}
	of := conf.Issuer{URL: o.Issuer, AllowPrivate: o.AllowPrivate}
	return &oidcClient{o: o, callback: callback, web: netguard.NewClient(reach), keys: identity.NewKeys(of, o.Log)}
}

// provider returns the metadata of the issuer. It caches them for discoveryTime, and then fetches them again. If this fails,
// provider returns the old metadata, for another discoveryTime.
func (c *oidcClient) provider(ctx context.Context) (*provider, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found != nil && time.Now().Before(c.until) {
		return c.found, nil
	}
	var p provider
	err := netguard.Get(ctx, c.web, strings.TrimSuffix(c.o.Issuer, "/")+"/.well-known/openid-configuration", "", &p)
	switch {
	case err != nil:
	case p.Issuer != c.o.Issuer:
		err = fmt.Errorf("its metadata is for another issuer, %s", sanitize.Line(p.Issuer, 200))
	case !netguard.Safe(p.Authorization), !netguard.Safe(p.Token), !netguard.Safe(p.Keys),
		p.UserInfo != "" && !netguard.Safe(p.UserInfo):
		err = errors.New("its metadata lacks an endpoint over https")
	}
	c.until = time.Now().Add(discoveryTime)
	if err == nil {
		c.found = &p
	} else if c.found == nil {
		c.until = time.Time{}
		return nil, fmt.Errorf("reading the metadata of %s: %w", c.o.Issuer, err)
	}
	return c.found, nil
}

func (c *oidcClient) config(p *provider) *oauth2.Config {
	style := oauth2.AuthStyleInHeader // the default in OpenID Connect
	if c.o.ClientSecret == "" || p.Methods != nil && !slices.Contains(p.Methods, "client_secret_basic") {
		style = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: c.o.ClientID, ClientSecret: c.o.ClientSecret, RedirectURL: c.callback, Scopes: c.scopes(p),
		Endpoint: oauth2.Endpoint{AuthURL: p.Authorization, TokenURL: p.Token, AuthStyle: style},
	}
}

// scopes returns the scopes that mcpx asks the issuer for: those of the config, if it has any, or else a default. Without
// offline_access most issuers give no refresh token, or one that ends with the user's session in the browser. The default leaves
// out offline_access if the issuer does not list it, because the issuer may then refuse it.
func (c *oidcClient) scopes(p *provider) []string {
	switch {
	case c.o.Scopes != nil:
		return c.o.Scopes
	case slices.Contains(p.Scopes, "offline_access"):
		return []string{"openid", "profile", "email", "offline_access"}
	}
	return []string{"openid", "profile", "email"}
}

// google is the URL of the issuer of Google accounts. This issuer gives a refresh token only if the login request has two
// parameters: access_type=offline, which only Google knows, and prompt=consent, with which Google always asks the user for consent.
const google = "https://accounts.google.com"

// asking returns parameters that the authorization request needs only at some issuers. For most issuers it returns none.
func (c *oidcClient) asking() (more []oauth2.AuthCodeOption) {
	if c.o.Issuer == google {
		more = append(more, oauth2.AccessTypeOffline, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	return more
}

// pendingLogin is a login for which the issuer has not sent the user back yet. It is an encrypted cookie, so only the same browser
// can finish it.
type pendingLogin struct {
	For      authorization `json:"a"`
	State    string        `json:"s"`
	Nonce    string        `json:"n"`
	Verifier string        `json:"v"` // PKCE code_verifier
	Until    int64         `json:"u"` // Unix seconds
}

// startLogin sends the user to the issuer. If a client wants the login, the user has already allowed it on the consent page.
func (s *Server) startLogin(w http.ResponseWriter, r *http.Request, a *authorization) {
	p, err := s.oidc.provider(r.Context())
	if err != nil {
		s.o.Log.Error("the login issuer cannot be reached", "error", err)
		s.back(w, a, url.Values{"error": {"temporarily_unavailable"}, "error_description": {"the login issuer cannot be reached"}})
		return
	}
	b := pendingLogin{*a, random(), random(), oauth2.GenerateVerifier(), deadline(pageTime)}
	sealed := s.seals.login.close(b)
	if len(sealed) > maxCookie {
		s.back(w, a, url.Values{"error": {"invalid_request"}, "error_description": {"state and redirect_uri are too long"}})
		return
	}
	s.setCookie(w, loginCookie, sealed)
	nonce := oauth2.SetAuthURLParam("nonce", b.Nonce)
	options := append(s.oidc.asking(), oauth2.S256ChallengeOption(b.Verifier), nonce)
	w.Header().Set("Location", s.oidc.config(p).AuthCodeURL(b.State, options...))
	w.WriteHeader(http.StatusSeeOther)
}

// callback is the endpoint to which the issuer sends the user back. It stores the new login, and sends the user on: to the client
// with a code, or to the page of mcpx itself.
func (s *Server) callback(w http.ResponseWriter, r *http.Request) {
	var b pendingLogin
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(r.URL.RawQuery) > maxQuery || s.seals.login.open(s.cookie(r, loginCookie), &b) != nil || expired(b.Until) ||
		len(query["state"]) != 1 || !equal(query.Get("state"), b.State) {
		pages.Fault(w, http.StatusBadRequest, "This login was not begun in this browser, or too long ago. Connect again from your client.")
		return
	}
	s.setCookie(w, loginCookie, "")
	got, who, err := s.oidc.finish(r.Context(), query, &b)
	if err == nil {
		err = s.nameFree(who)
	}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		s.o.Log.Warn("login refused", "subject", refused.subject, "reason", refused.why)
		l := audit.Login{Event: audit.LoginRefused, Subject: refused.subject, Reason: refused.why, Remote: r.RemoteAddr}
		l.Client = b.For.Redirect
		if refused.subject != "" {
			l.Principal = identity.OfIssuer(s.o.Issuer, refused.subject).Name
		}
		s.o.Audit.Login(l)
		s.back(w, &b.For, url.Values{"error": {"access_denied"}, "error_description": {refused.why}})
		return
	}
	if err != nil {
		s.o.Log.Error("a login failed", "error", err)
		s.o.Audit.Login(audit.Login{Event: audit.LoginRefused, Reason: err.Error(), Remote: r.RemoteAddr, Client: b.For.Redirect})
		s.back(w, &b.For, url.Values{"error": {"server_error"}, "error_description": {"the login failed; the log of mcpx says why"}})
		return
	}
	now := time.Now().Unix()
	g := &grant{
		Number: random(), Client: b.For.Client, Called: b.For.Called, Who: *who, Began: now, Renewed: now, Issued: *got,
		Until: deadline(codeTime),
	}
	if b.For.Own != "" {
		s.signedIn(w, r, g, b.For.Own)
		return
	}
	if err := s.begin(r.Context(), g); err != nil {
		s.back(w, &b.For, url.Values{"error": {"temporarily_unavailable"}, "error_description": {errUnavailable.Text}})
		return
	}
	of := b.For
	of.State, of.Called = "", "" // they would make the code long; the method back adds the state separately
	s.back(w, &b.For, url.Values{"code": {s.seals.code.close(code{g.Number, of, deadline(codeTime)})}})
}

// refusedError says why a user may not log in or stay logged in. why is shown to the user. subject is the issuer's ID of the user,
// and is empty if the issuer did not name a user.
type refusedError struct{ subject, why string }

func (e *refusedError) Error() string { return e.why }

// finish exchanges the issuer's code for tokens. It returns the tokens, and the user that the ID token names. The error is a
// *refusedError if this user may not log in.
func (c *oidcClient) finish(ctx context.Context, query url.Values, b *pendingLogin) (*issued, *user, error) {
	p, err := c.provider(ctx)
	if err != nil {
		return nil, nil, err
	}
	// RFC 9207, section 2.4: codes from another issuer must be refused.
	if iss := query["iss"]; len(iss) > 1 || len(iss) == 1 && iss[0] != c.o.Issuer || len(iss) == 0 && p.SendsIssuer {
		return nil, nil, errors.New("the callback comes from another issuer")
	}
	if query.Has("error") {
		if query.Get("error") == "access_denied" {
			return nil, nil, &refusedError{"", "the login was refused"}
		}
		return nil, nil, fmt.Errorf("the issuer answers %s: %s",
			sanitize.Line(query.Get("error"), 60), sanitize.Line(query.Get("error_description"), 200))
	}
	web := context.WithValue(ctx, oauth2.HTTPClient, netguard.Tokens(c.web))
	token, err := c.config(p).Exchange(web, query.Get("code"), oauth2.VerifierOption(b.Verifier))
	if err != nil {
		return nil, nil, fmt.Errorf("exchanging the code of the issuer: %w", plainRetrieve(err))
	}
	raw, _ := token.Extra("id_token").(string)
	claims, err := c.verify(ctx, raw)
	if err != nil {
		return nil, nil, fmt.Errorf("the ID token: %w", err)
	}
	if nonce, _ := claims["nonce"].(string); !equal(nonce, b.Nonce) {
		return nil, nil, errors.New("the ID token: wrong nonce")
	}
	got := &issued{Refresh: token.RefreshToken}
	got.give(token)
	got.Session, _ = claims["sid"].(string)
	if p.UserInfo != "" {
		// If the userinfo endpoint fails, the login continues without the claims from there; Allow may then refuse the user.
		err := c.addUserInfo(ctx, p, token.AccessToken, claims)
		if got.Info = err == nil; err != nil {
			c.o.Log.Warn("cannot read UserInfo; only the claims of the ID token are used", "error", err)
		}
	}
	if got.Refresh == "" {
		c.withoutRefresh(got, token)
	}
	who, err := c.user(claims)
	return got, who, err
}

// withoutRefresh decides how long a login lasts if the issuer gives no refresh token. If the userinfo endpoint has answered, mcpx
// can ask it again with the issuer's access token. The login then lasts as long as this token, or an hour if the issuer does not
// say how long the token is valid. Otherwise the login lasts for accessTime, which is as long as an access token of mcpx.
func (c *oidcClient) withoutRefresh(got *issued, token *oauth2.Token) {
	until := deadline(accessTime)
	if got.Info {
		got.Access = token.AccessToken
		if until = deadline(time.Hour); !token.Expiry.IsZero() {
			until = token.Expiry.Unix()
		}
	}
	got.AccessUntil = until
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.warned {
		c.warned = true
		c.o.Log.Warn("the issuer gives no refresh token, so users have to log in again soon: allow mcpx refresh tokens there, and if "+
			"auth.front.scopes is set, add offline_access", "logins_last", time.Until(time.Unix(until, 0)).Round(time.Second).String())
	}
}

// again asks the issuer whether a user who has logged in before may stay logged in. It returns the issuer's new tokens, and the
// user as the issuer describes them now. The error is a *refusedError if the user may not stay logged in. Any other error means
// that the issuer has not said whether the user may. Even after an error, the caller must store the *issued, because it may contain
// a new refresh token that replaces the old one.
func (c *oidcClient) again(ctx context.Context, previous *issued, who *user) (*issued, *user, error) {
	next := *previous
	p, err := c.provider(ctx)
	if err != nil {
		return &next, nil, err
	}
	access, claims := previous.Access, jwt.MapClaims{}
	if previous.Refresh != "" {
		if access, claims, err = c.refresh(ctx, p, &next, who); err != nil {
			return &next, nil, err
		}
	}
	if previous.Info && p.UserInfo != "" {
		if claims["sub"] == nil {
			claims["sub"] = who.Subject
		}
		switch err := c.addUserInfo(ctx, p, access, claims); {
		case err != nil && previous.Refresh == "" && refusedBy(err):
			return &next, nil, &refusedError{who.Subject, "the issuer does not know the login any more"}
		// The error is not ignored: without the groups from UserInfo, the user would lose rights, or even the login.
		case err != nil:
			return &next, nil, fmt.Errorf("reading UserInfo: %w", err)
		}
	}
	switch {
	case claims["sub"] != nil:
		now, err := c.user(claims)
		return &next, now, err
	case previous.Refresh == "":
		return &next, nil, &refusedError{who.Subject, "the issuer gives nothing to renew the login with"}
	}
	return &next, who, nil // the issuer has renewed the login, and says nothing new about the user
}

// refresh exchanges the issuer's refresh token in record for new tokens, and puts them into record. access is the new access token.
// claims are the claims of the new ID token; they are empty if the issuer sends no ID token. The error is a *refusedError if the
// issuer does not renew the login.
func (c *oidcClient) refresh(
	ctx context.Context, p *provider, record *issued, who *user,
) (access string, claims jwt.MapClaims, err error) {
	web := context.WithValue(ctx, oauth2.HTTPClient, netguard.Tokens(c.web))
	token, err := c.config(p).TokenSource(web, &oauth2.Token{RefreshToken: record.Refresh}).Token()
	if r, ok := errors.AsType[*oauth2.RetrieveError](err); ok && slices.Contains(refusals, r.ErrorCode) {
		c.o.Log.Info("the issuer does not renew a login", "subject", who.Subject, "answer", plainRetrieve(err))
		return "", nil, &refusedError{who.Subject, "the issuer does not renew the login"}
	}
	if err != nil {
		return "", nil, fmt.Errorf("renewing at the issuer: %w", plainRetrieve(err))
	}
	record.give(token)
	record.Refresh = token.RefreshToken // if the answer has no refresh token, this is the old one
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return token.AccessToken, jwt.MapClaims{}, nil
	}
	if claims, err = c.verify(ctx, raw); err != nil {
		return "", nil, fmt.Errorf("the ID token: %w", err)
	}
	if claims["sub"] != who.Subject {
		return "", nil, &refusedError{who.Subject, "the issuer renewed the login of another user"}
	}
	if session, ok := claims["sid"].(string); ok {
		record.Session = session
	}
	return token.AccessToken, claims, nil
}

// refusals are the errors by which issuers refuse to renew a login. The standard one is invalid_grant (RFC 6749, section 5.2). Dex
// answers invalid_request if it has forgotten the token. Other errors mean that mcpx is registered wrongly at the issuer, or that
// the issuer cannot answer now. They must not end the logins of all users.
var refusals = []string{"invalid_grant", "invalid_request", "access_denied", "login_required", "interaction_required", "consent_required"}

// refusedBy reports whether an endpoint has refused a token.
func refusedBy(err error) bool {
	s, ok := errors.AsType[*netguard.StatusError](err)
	return ok && (s.Code == http.StatusUnauthorized || s.Code == http.StatusForbidden)
}

// plainRetrieve removes the response body from an error of the package oauth2, because the body may contain tokens. It returns
// other errors unchanged.
func plainRetrieve(err error) error {
	if r, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("%s %s %s", r.Response.Status, sanitize.Line(r.ErrorCode, 60), sanitize.Line(r.ErrorDescription, 200))
	}
	return err
}

// verify checks an ID token (OpenID Connect Core 1.0, section 3.1.3.7) and returns its claims. The caller must check the nonce.
func (c *oidcClient) verify(ctx context.Context, raw string) (jwt.MapClaims, error) {
	claims := jwt.MapClaims{}
	_, err := c.keys.Parse(ctx, raw, claims, jwt.WithAudience(c.o.ClientID), jwt.WithExpirationRequired(), jwt.WithIssuedAt())
	audience, _ := claims.GetAudience()
	azp, named := claims["azp"]
	switch {
	case err != nil:
		return nil, err
	case claims["events"] != nil:
		return nil, errors.New("it is a logout token")
	case named && azp != c.o.ClientID || !named && len(audience) > 1:
		return nil, errors.New("issued to another client")
	}
	return claims, nil
}

// addUserInfo asks the userinfo endpoint about the user. It adds to claims what the endpoint says, but does not replace claims that
// are already there. token is an access token of the issuer.
func (c *oidcClient) addUserInfo(ctx context.Context, p *provider, token string, claims jwt.MapClaims) error {
	more := map[string]any{}
	if err := netguard.Get(ctx, c.web, p.UserInfo, token, &more); err != nil {
		return err
	}
	if more["sub"] != claims["sub"] {
		return errors.New("it is about another user")
	}
	if claims["email"] == nil {
		delete(claims, "email_verified") // it must not confirm the address from UserInfo
	} else if claims["email"] != more["email"] {
		delete(more, "email_verified") // it is not about the address in the ID token
	}
	for name, value := range more {
		if _, there := claims[name]; !there {
			claims[name] = value
		}
	}
	return nil
}

// user is the user who has logged in.
type user struct {
	Subject string `json:"s"`
	Name    string `json:"n,omitempty"` // some issuers let users choose it, so it identifies nobody
	Email   string `json:"e,omitempty"` // empty if the issuer says that the address is not verified
	// Verified is true if the issuer says that Email is verified.
	Verified bool     `json:"v,omitempty"`
	Groups   []string `json:"g,omitempty"`
	// Called is the name that identifies the user as a principal, and Claim is the claim that the name came from. Both are empty if
	// the subject identifies the user. Display is the user's display name; empty if there is none.
	Claim   string `json:"c,omitempty"`
	Called  string `json:"p,omitempty"`
	Display string `json:"d,omitempty"`
}

// user makes a user from claims. The error is a *refusedError in three cases: Allow does not permit this user, the user has no
// valid name (principal_claim), or the user has too many groups. If the claims have no subject, user returns a different error.
func (c *oidcClient) user(claims jwt.MapClaims) (*user, error) {
	text := func(name string) string {
		value, _ := claims[name].(string)
		return value
	}
	who := &user{Subject: text("sub"), Name: sanitize.Line(text("name"), maxName), Email: text("email")}
	value := func(name string) (any, bool) {
		one, there := claims[name]
		return one, there
	}
	var said bool
	if who.Verified, said = identity.Verified(value); said && !who.Verified {
		who.Email = ""
	}
	naming := identity.Naming{Principal: c.o.PrincipalClaim, Display: c.o.DisplayClaim, Unverified: c.o.Allow.UnverifiedEmails}
	var unnamed error
	if who.Called, unnamed = naming.Value(value); who.Called != "" {
		who.Claim = c.o.PrincipalClaim
	}
	who.Display = naming.Shown(value)
	switch groups := claims[c.o.GroupsClaim].(type) {
	case string:
		who.Groups = []string{groups}
	case []any:
		for _, one := range groups {
			if group, ok := one.(string); ok {
				who.Groups = append(who.Groups, group)
			}
		}
	}
	size, err := json.Marshal(who)
	switch {
	case err != nil || who.Subject == "":
		return nil, errors.New("the ID token has no subject")
	case unnamed != nil:
		return nil, &refusedError{who.Subject, unnamed.Error()}
	case len(size) > maxUser:
		why := fmt.Sprintf("the issuer sends too many groups (%d): configure it to send only the ones that mcpx needs", len(who.Groups))
		return nil, &refusedError{who.Subject, why}
	case !allows(&c.o.Allow, who):
		return nil, &refusedError{who.Subject, "this account may not use this mcpx"}
	}
	return who, nil
}

// admits reports whether a user who logged in earlier may stay logged in, although the config may have changed since. Allow must
// permit the user, and the config must still take the names of principals from the claim that this user's name came from. If the
// name is an e-mail address, it must be verified, unless the config permits unverified addresses. Without these checks, users could
// keep names that they chose themselves after a change of principal_claim.
func (o *Options) admits(who *user) bool {
	claim := o.PrincipalClaim
	if claim == "sub" {
		claim = ""
	}
	return who.Claim == claim && (claim != "email" || who.Verified || o.Allow.UnverifiedEmails) && allows(&o.Allow, who)
}

func allows(a *conf.Allow, who *user) bool {
	if a.Emails == nil && a.Groups == nil && a.Subjects == nil {
		return true
	}
	email := strings.ToLower(who.Email)
	return slices.Contains(a.Subjects, who.Subject) ||
		slices.ContainsFunc(who.Groups, func(group string) bool { return slices.Contains(a.Groups, group) }) ||
		slices.ContainsFunc(a.Emails, func(glob string) bool {
			ok, _ := path.Match(strings.ToLower(glob), email)
			return ok && email != "" && (who.Verified || a.UnverifiedEmails)
		})
}
