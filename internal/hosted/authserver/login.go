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
	// maxUser is the most bytes that the claims of a user may have, as they become part of codes and tokens, which go
	// into URLs and headers.
	maxUser       = 4 << 10
	discoveryTime = time.Hour // how long the issuer's metadata is cached
)

// login logs users in at the OpenID issuer; it is an OpenID Connect client.
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

// provider returns the metadata of the issuer, cached for discoveryTime. If it cannot be fetched again after that
// time, the old metadata stays in use.
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
	style := oauth2.AuthStyleInHeader // the default in OpenID Connect
	if l.o.ClientSecret == "" || p.Methods != nil && !slices.Contains(p.Methods, "client_secret_basic") {
		style = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: l.o.ClientID, ClientSecret: l.o.ClientSecret, RedirectURL: l.callback, Scopes: l.o.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: p.Authorization, TokenURL: p.Token, AuthStyle: style},
	}
}

// pendingLogin is a login for which the issuer has not sent the user back yet. It is encrypted in a cookie, so that
// only the same browser can finish it.
type pendingLogin struct {
	For      authorization `json:"a"`
	State    string        `json:"s"`
	Nonce    string        `json:"n"`
	Verifier string        `json:"v"` // PKCE code_verifier
	Until    int64         `json:"u"` // Unix seconds
}

// startLogin sends the user to the issuer, after the user has consented.
func (s *Server) startLogin(w http.ResponseWriter, r *http.Request, a *authorization) {
	p, err := s.login.provider(r.Context())
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
	w.Header().Set("Location", s.login.config(p).AuthCodeURL(b.State, oauth2.S256ChallengeOption(b.Verifier), nonce))
	w.WriteHeader(http.StatusSeeOther)
}

// callback is the endpoint where the issuer sends the user back.
func (s *Server) callback(w http.ResponseWriter, r *http.Request) {
	var b pendingLogin
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(r.URL.RawQuery) > maxQuery || s.seals.login.open(s.cookie(r, loginCookie), &b) != nil || expired(b.Until) ||
		len(query["state"]) != 1 || !equal(query.Get("state"), b.State) {
		s.faultPage(w, http.StatusBadRequest, "This login was not begun in this browser, or too long ago. Connect again from your client.")
		return
	}
	s.setCookie(w, loginCookie, "")
	who, err := s.login.finish(r.Context(), query, &b)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		s.o.Log.Warn("login refused", "subject", refused.subject, "reason", refused.why)
		s.back(w, &b.For, url.Values{"error": {"access_denied"}, "error_description": {refused.why}})
		return
	}
	if err != nil {
		s.o.Log.Error("a login failed", "error", err)
		s.back(w, &b.For, url.Values{"error": {"server_error"}, "error_description": {"the login failed; the log of mcpx says why"}})
		return
	}
	s.o.Log.Info("user logged in", "principal", s.principal(who).Name, "email", who.Email, "redirect", b.For.Redirect)
	of := b.For
	of.State = "" // it would make the code long; the method back adds the state separately
	s.back(w, &b.For, url.Values{"code": {s.seals.code.close(code{random(), of, *who, deadline(codeTime)})}})
}

// refusedError says why a user may not log in. Its text is shown to the user.
type refusedError struct{ subject, why string }

func (e *refusedError) Error() string { return e.why }

// finish exchanges the issuer's code for an ID token, and returns the user.
func (l *login) finish(ctx context.Context, query url.Values, b *pendingLogin) (*user, error) {
	p, err := l.provider(ctx)
	if err != nil {
		return nil, err
	}
	// RFC 9207, section 2.4: codes from another issuer must be refused.
	if iss := query["iss"]; len(iss) > 1 || len(iss) == 1 && iss[0] != l.o.Issuer || len(iss) == 0 && p.SendsIssuer {
		return nil, errors.New("the callback comes from another issuer")
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

// plainRetrieve removes the response body from an error, since it may contain tokens.
func plainRetrieve(err error) error {
	if r, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("%s %s %s", r.Response.Status, sanitize.Line(r.ErrorCode, 60), sanitize.Line(r.ErrorDescription, 200))
	}
	return err
}

// verify checks an ID token (OpenID Connect Core 1.0, section 3.1.3.7). The issuer's keys are fetched at each login.
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
		return nil, errors.New("wrong nonce")
	case named && azp != l.o.ClientID || !named && len(audience) > 1:
		return nil, errors.New("issued to another client")
	}
	return claims, nil
}

// addUserInfo adds claims that only the userinfo endpoint returns. If that fails, the login continues without them;
// Allow may then refuse the user.
func (l *login) addUserInfo(ctx context.Context, p *provider, token string, claims jwt.MapClaims) {
	more := map[string]any{}
	if err := netguard.Get(ctx, l.web, p.UserInfo, token, &more); err != nil || more["sub"] != claims["sub"] {
		l.o.Log.Warn("cannot read UserInfo; only the claims of the ID token are used", "error", err)
		return
	}
	for name, value := range more {
		if _, there := claims[name]; !there {
			claims[name] = value
		}
	}
}

// Allow says which users may log in: those who match any of its members. If all members are nil, every user of the
// issuer may.
type Allow = conf.Allow

// user is the user who has logged in.
type user struct {
	Subject string `json:"s"`
	Name    string `json:"n,omitempty"` // users may be able to choose it
	Email   string `json:"e,omitempty"` // empty if the issuer says that the address is not verified
	// Verified is true if the issuer says that Email is verified.
	Verified bool     `json:"v,omitempty"`
	Groups   []string `json:"g,omitempty"`
}

// user makes a user from claims. The error is a *refusedError if Allow does not permit this user.
func (l *login) user(claims jwt.MapClaims) (*user, error) {
	text := func(name string) string {
		value, _ := claims[name].(string)
		return value
	}
	who := &user{Subject: text("sub"), Name: sanitize.Line(text("name"), maxName), Email: text("email")}
	verified, there := claims["email_verified"]
	if who.Verified = verified == true || verified == "true"; there && !who.Verified {
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
		return nil, errors.New("the ID token has no subject")
	case len(size) > maxUser:
		why := fmt.Sprintf("the issuer sends too many groups (%d): configure it to send only the ones that mcpx needs", len(who.Groups))
		return nil, &refusedError{who.Subject, why}
	case !allows(&l.o.Allow, who):
		return nil, &refusedError{who.Subject, "this account may not use this mcpx"}
	}
	return who, nil
}

func allows(a *Allow, who *user) bool {
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
