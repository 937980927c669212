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

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/netguard"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/hosted/identity"
)

const (
	// maxUser bounds what the issuer says of a user, in bytes: it goes into codes,
	// which are parts of URLs, and into headers.
	maxUser       = 4 << 10
	discoveryTime = time.Hour // that the metadata of the issuer is kept
)

// login is the client of the OpenID issuer.
type login struct {
	o        *Options
	callback string
	web      *http.Client

	mu    sync.Mutex
	found *provider
	until time.Time
}

// provider is the metadata of an issuer (OpenID Connect Discovery 1.0, section 3).
type provider struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Keys          string   `json:"jwks_uri"`
	UserInfo      string   `json:"userinfo_endpoint"`
	Methods       []string `json:"token_endpoint_auth_methods_supported"`
	SendsIssuer   bool     `json:"authorization_response_iss_parameter_supported"`
}

func newLogin(o *Options, callback string) *login {
	reach := netguard.Reach{Loopback: netguard.LoopbackURL(o.Issuer), Private: o.AllowPrivate, Key: "auth.front.allow_private"}
	return &login{o: o, callback: callback, web: netguard.NewClient(reach)}
}

// provider returns the metadata of the issuer, which it reads again after discoveryTime. Where
// that fails, the earlier metadata stays in use.
func (l *login) provider(ctx context.Context) (*provider, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found != nil && time.Now().Before(l.until) {
		return l.found, nil
	}
	var p provider
	err := netguard.Get(ctx, l.web, strings.TrimSuffix(l.o.Issuer, "/")+"/.well-known/openid-configuration", "", &p)
	switch {
	case err != nil:
	case p.Issuer != l.o.Issuer:
		err = fmt.Errorf("its metadata is for another issuer, %s", sanitize.Line(p.Issuer, 200))
	case !netguard.Safe(p.Authorization), !netguard.Safe(p.Token), !netguard.Safe(p.Keys),
		p.UserInfo != "" && !netguard.Safe(p.UserInfo):
		err = errors.New("its metadata lacks an endpoint over https")
	}
	l.until = time.Now().Add(discoveryTime)
	if err == nil {
		l.found = &p
	} else if l.found == nil {
		l.until = time.Time{}
		return nil, fmt.Errorf("reading the metadata of %s: %w", l.o.Issuer, err)
	}
	return l.found, nil
}

func (l *login) config(p *provider) *oauth2.Config {
	style := oauth2.AuthStyleInHeader // the default of OpenID Connect
	if l.o.ClientSecret == "" || p.Methods != nil && !slices.Contains(p.Methods, "client_secret_basic") {
		style = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: l.o.ClientID, ClientSecret: l.o.ClientSecret, RedirectURL: l.callback, Scopes: l.o.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: p.Authorization, TokenURL: p.Token, AuthStyle: style},
	}
}

// begun is a login that waits for the user to come back. It lies sealed in a cookie, so
// that only the browser that has begun it can end it.
type begun struct {
	For      authorization `json:"a"`
	State    string        `json:"s"`
	Nonce    string        `json:"n"`
	Verifier string        `json:"v"` // of PKCE
	Until    int64         `json:"u"` // Unix seconds
}

// startLogin sends a user who has said yes on the page to the issuer.
func (s *Server) startLogin(w http.ResponseWriter, r *http.Request, a *authorization) {
	p, err := s.login.provider(r.Context())
	if err != nil {
		s.o.Log.Error("nobody can log in", "error", err)
		s.back(w, a, url.Values{"error": {"temporarily_unavailable"}, "error_description": {"the login cannot be reached"}})
		return
	}
	b := begun{*a, random(), random(), oauth2.GenerateVerifier(), deadline(pageTime)}
	sealed := s.seals.login.close(b)
	if len(sealed) > maxCookie {
		s.back(w, a, url.Values{"error": {"invalid_request"}, "error_description": {"state and redirect_uri are too long"}})
		return
	}
	s.setCookie(w, loginCookie, sealed)
	nonce := oauth2.SetAuthURLParam("nonce", b.Nonce)
	w.Header().Set("Location", s.login.config(p).AuthCodeURL(b.State, oauth2.S256ChallengeOption(b.Verifier), nonce))
	w.WriteHeader(http.StatusSeeOther)
}

// callback is where the issuer sends the user back to.
func (s *Server) callback(w http.ResponseWriter, r *http.Request) {
	var b begun
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(r.URL.RawQuery) > maxQuery || s.seals.login.open(s.cookie(r, loginCookie), &b) != nil || over(b.Until) ||
		len(query["state"]) != 1 || !equal(query.Get("state"), b.State) {
		s.faultPage(w, http.StatusBadRequest, "This login was not begun in this browser, or too long ago. Connect again from your client.")
		return
	}
	s.setCookie(w, loginCookie, "")
	who, err := s.login.end(r.Context(), query, &b)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		s.o.Log.Warn("a person may not log in", "subject", refused.subject, "reason", refused.why)
		s.back(w, &b.For, url.Values{"error": {"access_denied"}, "error_description": {refused.why}})
		return
	}
	if err != nil {
		s.o.Log.Error("a login failed", "error", err)
		s.back(w, &b.For, url.Values{"error": {"server_error"}, "error_description": {"the login failed; the log of mcpx says why"}})
		return
	}
	s.o.Log.Info("a person has logged in", "principal", s.principal(who).Name, "email", who.Email, "redirect", b.For.Redirect)
	of := b.For
	of.State = "" // it would make the code long, and goes back beside it
	s.back(w, &b.For, url.Values{"code": {s.seals.code.close(code{random(), of, *who, deadline(codeTime)})}})
}

// refusedError says why a user may not log in, in words for that user.
type refusedError struct{ subject, why string }

func (e *refusedError) Error() string { return e.why }

// end finds out who has logged in.
func (l *login) end(ctx context.Context, query url.Values, b *begun) (*user, error) {
	p, err := l.provider(ctx)
	if err != nil {
		return nil, err
	}
	// RFC 9207, section 2.4: another issuer must not hand its codes to this one.
	if iss := query["iss"]; len(iss) > 1 || len(iss) == 1 && iss[0] != l.o.Issuer || len(iss) == 0 && p.SendsIssuer {
		return nil, errors.New("the answer is not from the issuer that was asked")
	}
	if query.Has("error") {
		if query.Get("error") == "access_denied" {
			return nil, &refusedError{"", "the login was refused"}
		}
		return nil, fmt.Errorf("the issuer answers %s: %s",
			sanitize.Line(query.Get("error"), 60), sanitize.Line(query.Get("error_description"), 200))
	}
	web := context.WithValue(ctx, oauth2.HTTPClient, l.web)
	token, err := l.config(p).Exchange(web, query.Get("code"), oauth2.VerifierOption(b.Verifier))
	if err != nil {
		return nil, fmt.Errorf("exchanging the code of the issuer: %w", plainRetrieve(err))
	}
	raw, _ := token.Extra("id_token").(string)
	claims, err := l.verify(ctx, p, raw, b.Nonce)
	if err != nil {
		return nil, fmt.Errorf("the ID token: %w", err)
	}
	if p.UserInfo != "" {
		l.addUserInfo(ctx, p, token.AccessToken, claims)
	}
	return l.user(claims)
}

// plainRetrieve leaves out the body of an answer, which may hold tokens.
func plainRetrieve(err error) error {
	if r, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("%s %s %s", r.Response.Status, sanitize.Line(r.ErrorCode, 60), sanitize.Line(r.ErrorDescription, 200))
	}
	return err
}

// verify checks an ID token (OpenID Connect Core 1.0, section 3.1.3.7). The keys are read
// anew for each login.
func (l *login) verify(ctx context.Context, p *provider, raw, nonce string) (jwt.MapClaims, error) {
	var set json.RawMessage
	if err := netguard.Get(ctx, l.web, p.Keys, "", &set); err != nil {
		return nil, fmt.Errorf("reading the keys of the issuer: %w", err)
	}
	keys, err := keyfunc.NewJWKSetJSON(set)
	if err != nil {
		return nil, fmt.Errorf("reading the keys of the issuer: %w", err)
	}
	claims := jwt.MapClaims{}
	_, err = jwt.ParseWithClaims(raw, claims, keys.Keyfunc, jwt.WithValidMethods(identity.Algorithms), jwt.WithIssuer(l.o.Issuer),
		jwt.WithAudience(l.o.ClientID), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(30*time.Second))
	audience, _ := claims.GetAudience()
	azp, named := claims["azp"]
	got, _ := claims["nonce"].(string)
	switch {
	case err != nil:
		return nil, err
	case !equal(got, nonce):
		return nil, errors.New("it has another nonce")
	case named && azp != l.o.ClientID || !named && len(audience) > 1:
		return nil, errors.New("it was made for another client")
	}
	return claims, nil
}

// addUserInfo adds the claims that the issuer leaves out of its ID tokens. Where that fails the
// login goes on without them, and Allow may refuse the user.
func (l *login) addUserInfo(ctx context.Context, p *provider, token string, claims jwt.MapClaims) {
	more := map[string]any{}
	if err := netguard.Get(ctx, l.web, p.UserInfo, token, &more); err != nil || more["sub"] != claims["sub"] {
		l.o.Log.Warn("the issuer says no more of a person than its ID token", "error", err)
		return
	}
	for name, value := range more {
		if _, there := claims[name]; !there {
			claims[name] = value
		}
	}
}

// Allow says who may log in: every user that fits one of its members. If all are nil, every
// user that the issuer knows.
type Allow = conf.Allow

// user is who has logged in.
type user struct {
	Subject string   `json:"s"`
	Name    string   `json:"n,omitempty"` // which the user may have chosen
	Email   string   `json:"e,omitempty"` // unless the issuer says that it is not verified
	Groups  []string `json:"g,omitempty"`
}

// user reads the claims of a user. Its error is a *refusedError where Allow refuses.
func (l *login) user(claims jwt.MapClaims) (*user, error) {
	text := func(name string) string {
		value, _ := claims[name].(string)
		return value
	}
	who := &user{Subject: text("sub"), Name: sanitize.Line(text("name"), maxName), Email: text("email")}
	if verified, there := claims["email_verified"]; there && verified != true && verified != "true" {
		who.Email = ""
	}
	switch groups := claims[l.o.GroupsClaim].(type) {
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
		return nil, errors.New("the issuer does not say who has logged in")
	case len(size) > maxUser:
		return nil, &refusedError{
			who.Subject,
			fmt.Sprintf("the issuer names too many groups (%d): let it name those that concern mcpx", len(who.Groups)),
		}
	case !lets(&l.o.Allow, who):
		return nil, &refusedError{who.Subject, "this account may not use this mcpx"}
	}
	return who, nil
}

func lets(a *Allow, who *user) bool {
	if a.Emails == nil && a.Groups == nil && a.Subjects == nil {
		return true
	}
	email := strings.ToLower(who.Email)
	return slices.Contains(a.Subjects, who.Subject) ||
		slices.ContainsFunc(who.Groups, func(group string) bool { return slices.Contains(a.Groups, group) }) ||
		slices.ContainsFunc(a.Emails, func(glob string) bool {
			ok, _ := path.Match(strings.ToLower(glob), email)
			return ok && email != ""
		})
}
