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
	"mcpx/internal/hosted/audit"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/identity"
)

const maxTokenRequest = 32 << 10

// code is what an authorization code contains. The login that it belongs to is already in the store.
type code struct {
	Grant string        `json:"g"`
	For   authorization `json:"a"`
	Until int64         `json:"u"` // Unix seconds
}

// refresh is what a refresh token contains: the number of a login, and the token's own number among the refresh tokens of this
// login.
type refresh struct {
	Grant  string `json:"g"`
	Number int    `json:"n"`
}

// access is what an access token contains. The token is not a JWT, because only this server reads it, and clients must not see the
// data of the user.
type access struct {
	Grant string `json:"g"`
	Who   user   `json:"w"`
	Until int64  `json:"u"` // Unix seconds
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	form, ok := s.form(w, r)
	if !ok {
		return
	}
	var g *grant
	var err error
	switch form.Get("grant_type") {
	case "authorization_code":
		g, err = s.redeem(r.Context(), form)
	case "refresh_token":
		g, err = s.renew(r.Context(), form)
	case "":
		err = &fault{"invalid_request", "grant_type is missing"}
	default:
		err = &fault{"unsupported_grant_type", "grant_type must be authorization_code or refresh_token"}
	}
	defer s.sweep(context.WithoutCancel(r.Context()))
	if f, ok := errors.AsType[*fault](err); ok {
		s.o.Log.Info("a client gets no token", "reason", f.Error(), "remote", r.RemoteAddr)
		refuse(w, f)
		return
	}
	lasts := min(accessTime, time.Duration(g.Until-time.Now().Unix())*time.Second)
	out := map[string]any{
		"access_token":  s.seals.access.close(access{g.Number, g.Who, deadline(lasts)}),
		"token_type":    "Bearer",
		"expires_in":    int(lasts / time.Second),
		"refresh_token": s.seals.refresh.close(refresh{g.Number, g.Next}),
	}
	if len(s.o.Granted) > 0 {
		out["scope"] = strings.Join(s.o.Granted, " ")
	}
	httpd.WriteJSON(w, http.StatusOK, out)
}

// form reads the parameters of a request to the token, revocation or logout endpoint. Only resource may occur twice. If form
// returns false, it has answered the request with an error.
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

// redeem exchanges a code for tokens: it returns the login, which has now begun. A code that is used a second time was stolen, so
// its login ends.
func (s *Server) redeem(ctx context.Context, form url.Values) (*grant, error) {
	var c code
	bad := func(text string) (*grant, error) { return nil, &fault{"invalid_grant", text} }
	switch err := s.seals.code.open(form.Get("code"), &c); {
	case form.Get("client_id") == "":
		return nil, &fault{"invalid_client", "client_id is missing"}
	case err != nil:
		return nil, s.unknown(form.Get("client_id"), "unknown code")
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
	g, err := s.change(ctx, c.Grant, func(g *grant) error {
		switch {
		case g.Ended != "":
			return errNothing
		case g.Next > 0:
			g.end("its code was used twice")
		default:
			g.Next, g.Until = 1, s.until(g)
		}
		return nil
	})
	switch {
	case errors.Is(err, errUnknown), errors.Is(err, errNothing):
		return bad("the login of this code has ended")
	case err != nil:
		return nil, err
	case g.Ended != "":
		s.ended(g)
		return bad("the code was used before")
	}
	s.began(g)
	return g, nil
}

// began logs and reports that a login has begun.
func (s *Server) began(g *grant) {
	p := s.principal(&g.Who)
	s.o.Log.Info("user logged in", "principal", p.Name, "email", g.Who.Email, "login", g.id(), "client", g.Called)
	s.record(audit.LoginBegan, g, p)
}

// errUnavailable is returned if the store of logins cannot be reached.
var errUnavailable = &fault{"temporarily_unavailable", "logins cannot be looked up now; try again"}

// unknown returns the error for a code or refresh token that this server has not made. If this server has not made the client ID
// either, auth.front.key has probably changed since the client registered. The error is then invalid_client, because it is the only
// error after which most clients register again. Otherwise it is invalid_grant with the given text.
func (s *Server) unknown(client, text string) *fault {
	if !strings.HasPrefix(client, "https://") && s.seals.client.open(client, new(struct{})) != nil {
		return errUnregistered
	}
	return &fault{"invalid_grant", text}
}

// verifies reports whether a PKCE code_verifier fits the code_challenge (RFC 7636, section 4.6).
func verifies(verifier, challenge string) bool {
	sum := sha256.Sum256([]byte(verifier))
	return len(verifier) >= 43 && len(verifier) <= 128 && equal(base64.RawURLEncoding.EncodeToString(sum[:]), challenge)
}

// renew uses up a refresh token, if the issuer agrees. It returns the renewed login, whose field Next is the number of the new
// refresh token.
func (s *Server) renew(ctx context.Context, form url.Values) (*grant, error) {
	var old refresh
	err := s.seals.refresh.open(form.Get("refresh_token"), &old)
	switch {
	case form.Get("client_id") == "":
		return nil, &fault{"invalid_client", "client_id is missing"}
	case err != nil:
		return nil, s.unknown(form.Get("client_id"), "unknown refresh token")
	case !s.ours(form["resource"]):
		return nil, &fault{"invalid_target", "resource must be " + s.o.Resource}
	}
	client := digest(form.Get("client_id"))
	// A client may send one token in two requests at the same time, for example if several programs share a login. The first
	// request uses the token. If the second request arrives before the first is done, it gets the same result. If the token arrives
	// once more after that, it was stolen, and the login ends.
	arrived := time.Now().UnixMilli()
	return s.renewed(ctx, old.Grant, func(g *grant) error {
		switch {
		case g.Ended != "":
			return errEnded
		case g.Client == "" || g.Client != client:
			return &fault{"invalid_grant", "the refresh token is for another client"}
		case expired(g.Until):
			return &fault{"invalid_grant", "the refresh token is too old: log in again"}
		case !s.o.admits(&g.Who):
			return &fault{"invalid_grant", "this account may not use this mcpx any more"}
		case old.Number == g.Next-1 && arrived < g.Done:
			return errNothing
		case old.Number < g.Next:
			g.end("a refresh token was used twice")
		default:
			g.Next = old.Number // old.Number is greater than Next only if the store has lost a change
		}
		return nil
	})
}

// revoke ends the login that a token belongs to (RFC 7009). The response is the same if the token is unknown.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	form, ok := s.form(w, r)
	if !ok {
		return
	}
	client, text := digest(form.Get("client_id")), form.Get("token")
	var long refresh
	var short access
	number := ""
	switch {
	case text == "":
		refuse(w, &fault{"invalid_request", "token is missing"})
		return
	case s.seals.refresh.open(text, &long) == nil:
		number = long.Grant
	case s.seals.access.open(text, &short) == nil:
		number = short.Grant
	}
	if number != "" {
		g, err := s.change(r.Context(), number, func(g *grant) error {
			if g.Ended != "" || g.Client == "" || g.Client != client {
				return errNothing
			}
			g.end("the client has logged out")
			return nil
		})
		if err == nil {
			s.ended(g)
		} else if errors.Is(err, errUnavailable) {
			refuse(w, errUnavailable)
			return
		}
	}
	w.WriteHeader(http.StatusOK)
}

// Prove verifies an access token and returns its user. It returns nil if this server has not made the token, if the token has
// expired, if its login has ended, or if its user may not log in any more.
func (s *Server) Prove(token string) *identity.Proof {
	var a access
	if !strings.HasPrefix(token, accessPrefix) || s.seals.access.open(token, &a) != nil || expired(a.Until) || !s.o.admits(&a.Who) {
		return nil
	}
	stands := s.lifeOf(a.Grant)
	if stands == nil {
		return nil
	}
	p := s.principal(&a.Who)
	p.IssuerToken = func(ctx context.Context) (string, error) { return s.IssuerToken(ctx, a.Grant) }
	return &identity.Proof{Principal: p, Revoked: stands, Until: time.Unix(a.Until, 0)}
}

// LoginIssuer returns the URL of the OpenID issuer where users log in.
func (s *Server) LoginIssuer() string { return s.o.Issuer }

// principal returns the principal of a user. It is the one that a JWT of the login issuer would prove for this user, but with the
// scopes in Granted.
func (s *Server) principal(who *user) *caller.Principal {
	claims := map[string]any{"iss": s.o.Issuer, "sub": who.Subject, s.o.GroupsClaim: who.Groups}
	for name, value := range map[string]string{"name": who.Name, "email": who.Email} {
		if value != "" {
			claims[name] = value
		}
	}
	all, _ := json.Marshal(claims) // cannot fail: the values are strings and lists of strings
	p := identity.Named(s.o.Issuer, who.Subject, who.Called)
	p.Display = who.Display
	p.Groups, p.Scopes, p.Claims = who.Groups, s.o.Granted, all
	return p
}
