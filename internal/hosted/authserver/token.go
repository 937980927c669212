package authserver

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/identity"
)

const maxTokenRequest = 32 << 10

// code is an authorization code. Its number in the grant is 0.
type code struct {
	Grant string        `json:"g"`
	For   authorization `json:"a"`
	Who   user          `json:"w"`
	Until int64         `json:"u"` // Unix seconds
}

type refresh struct {
	Grant  string `json:"g"`
	Number int    `json:"n"`
	Client string `json:"c"` // digest of the client_id
	Who    user   `json:"w"`
	Login  int64  `json:"l"` // when the user logged in, in Unix seconds
	Until  int64  `json:"u"` // Unix seconds
}

// access is an access token. It is not a JWT: only this server reads it, and clients must not see the user data in
// it.
type access struct {
	Grant  string `json:"g"`
	Client string `json:"c"` // digest of the client_id
	Who    user   `json:"w"`
	Until  int64  `json:"u"` // Unix seconds
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	form, ok := s.form(w, r)
	if !ok {
		return
	}
	var next *refresh
	var err error
	switch form.Get("grant_type") {
	case "authorization_code":
		next, err = s.redeem(r.Context(), form)
	case "refresh_token":
		next, err = s.renew(r.Context(), form)
	case "":
		err = &fault{"invalid_request", "grant_type is missing"}
	default:
		err = &fault{"unsupported_grant_type", "grant_type must be authorization_code or refresh_token"}
	}
	if f, ok := errors.AsType[*fault](err); ok {
		s.o.Log.Info("a client gets no token", "reason", f.Error(), "remote", r.RemoteAddr)
		refuse(w, f)
		return
	}
	out := map[string]any{
		"access_token":  s.seals.access.close(access{next.Grant, next.Client, next.Who, deadline(accessTime)}),
		"token_type":    "Bearer",
		"expires_in":    int(accessTime / time.Second),
		"refresh_token": s.seals.refresh.close(next),
	}
	if len(s.o.Granted) > 0 {
		out["scope"] = strings.Join(s.o.Granted, " ")
	}
	httpd.WriteJSON(w, http.StatusOK, out)
}

// form reads the parameters of a request to the token or revocation endpoint.
func (s *Server) form(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	r.Body = http.MaxBytesReader(w, r.Body, maxTokenRequest)
	if err := r.ParseForm(); err != nil {
		refuse(w, &fault{"invalid_request", "malformed form"})
		return nil, false
	}
	for name := range r.PostForm {
		if _, err := only(r.PostForm, name); err != nil && name != "resource" {
			refuse(w, &fault{"invalid_request", "duplicate parameter"})
			return nil, false
		}
	}
	return r.PostForm, true
}

// redeem exchanges a code for a refresh token. If a code is used twice, it was stolen; then all tokens of its grant
// are revoked.
func (s *Server) redeem(ctx context.Context, form url.Values) (*refresh, error) {
	var c code
	bad := func(text string) (*refresh, error) { return nil, &fault{"invalid_grant", text} }
	switch err := s.seals.code.open(form.Get("code"), &c); {
	case form.Get("client_id") == "":
		return nil, &fault{"invalid_client", "client_id is missing"}
	case err != nil:
		return bad("unknown code")
	case c.For.Client != digest(form.Get("client_id")):
		return bad("the code is for another client")
	case expired(c.Until):
		return bad("the code is too old")
	case c.For.Redirect != form.Get("redirect_uri"):
		return bad("redirect_uri is not the one that the code was sent to")
	case !verifies(form.Get("code_verifier"), c.For.Challenge):
		return bad("code_verifier does not fit the code_challenge")
	case !s.ours(form["resource"]):
		return nil, &fault{"invalid_target", "resource must be " + s.o.Resource}
	}
	until := time.Now().Add(refreshTime)
	switch fresh, err := s.grants.Redeem(ctx, c.Grant, 0, until); {
	case err != nil:
		return nil, errUnavailable
	case !fresh:
		s.o.Log.Warn("a code was used twice: its tokens are revoked", "principal", s.principal(&c.Who).Name)
		return bad("the code was used before")
	}
	return &refresh{c.Grant, 1, c.For.Client, c.Who, time.Now().Unix(), until.Unix()}, nil
}

// errUnavailable is returned if the server cannot check whether a code or token was already used.
var errUnavailable = &fault{"temporarily_unavailable", "used codes and tokens cannot be looked up now; try again"}

// verifies checks a PKCE code_verifier (RFC 7636, section 4.6).
func verifies(verifier, challenge string) bool {
	sum := sha256.Sum256([]byte(verifier))
	return len(verifier) >= 43 && len(verifier) <= 128 && equal(base64.RawURLEncoding.EncodeToString(sum[:]), challenge)
}

func (s *Server) renew(ctx context.Context, form url.Values) (*refresh, error) {
	var old refresh
	bad := func(text string) (*refresh, error) { return nil, &fault{"invalid_grant", text} }
	switch err := s.seals.refresh.open(form.Get("refresh_token"), &old); {
	case form.Get("client_id") == "":
		return nil, &fault{"invalid_client", "client_id is missing"}
	case err != nil:
		return bad("unknown refresh token")
	case old.Client != digest(form.Get("client_id")):
		return bad("the refresh token is for another client")
	case expired(old.Until):
		return bad("the refresh token is too old: log in again")
	case !allows(&s.o.Allow, &old.Who):
		return bad("this account may not use this mcpx any more")
	case !s.ours(form["resource"]):
		return nil, &fault{"invalid_target", "resource must be " + s.o.Resource}
	}
	until := min(deadline(refreshTime), time.Unix(old.Login, 0).Add(grantTime).Unix())
	switch fresh, err := s.grants.Redeem(ctx, old.Grant, old.Number, time.Unix(until, 0)); {
	case err != nil:
		return nil, errUnavailable
	case !fresh:
		s.o.Log.Warn("a refresh token was used twice: the login is revoked", "principal", s.principal(&old.Who).Name)
		return bad("the refresh token was used before: log in again")
	}
	old.Number, old.Until = old.Number+1, until
	return &old, nil
}

// revoke ends the grant that a token belongs to (RFC 7009). The response is the same if the token is unknown.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	form, ok := s.form(w, r)
	if !ok {
		return
	}
	client, text := digest(form.Get("client_id")), form.Get("token")
	var long refresh
	var short access
	var err error
	switch {
	case text == "":
		refuse(w, &fault{"invalid_request", "token is missing"})
		return
	case s.seals.refresh.open(text, &long) == nil && long.Client == client:
		err = s.grants.End(r.Context(), long.Grant, time.Unix(long.Login, 0).Add(grantTime))
	case s.seals.access.open(text, &short) == nil && short.Client == client:
		err = s.grants.End(r.Context(), short.Grant, time.Now().Add(grantTime))
	}
	if err != nil {
		refuse(w, errUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (s *Server) Prove(token string) *identity.Proof {
	var a access
	if !strings.HasPrefix(token, accessPrefix) || s.seals.access.open(token, &a) != nil || expired(a.Until) || !allows(&s.o.Allow, &a.Who) {
		return nil
	}
	stands := s.grants.Standing(s.ctx, a.Grant)
	if stands == nil {
		return nil
	}
	return &identity.Proof{Principal: s.principal(&a.Who), Revoked: stands, Until: time.Unix(a.Until, 0)}
}

// LoginIssuer implements [identity.LocalIssuer].
func (s *Server) LoginIssuer() string { return s.o.Issuer }

// principal returns the principal that a JWT of the login issuer for this user would have.
func (s *Server) principal(who *user) *caller.Principal {
	claims := map[string]any{"iss": s.o.Issuer, "sub": who.Subject, s.o.GroupsClaim: who.Groups}
	for name, value := range map[string]string{"name": who.Name, "email": who.Email} {
		if value != "" {
			claims[name] = value
		}
	}
	all, _ := json.Marshal(claims) // cannot fail: the values are strings and lists of strings
	p := identity.OfIssuer(s.o.Issuer, who.Subject)
	p.Groups, p.Scopes, p.Claims = who.Groups, s.o.Granted, all
	return p
}
