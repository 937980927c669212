package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/identity"
)

const (
	// logoutEvent is the member of the claim events that makes a JWT a logout token.
	logoutEvent = "http://schemas.openid.net/event/backchannel-logout"
	// logoutTime is the greatest age of a logout token. The store remembers the ID of a used token until the token is older than
	// this, so that no token is used twice.
	logoutTime = 5 * time.Minute
	// usedPrefix begins the keys of used logout tokens in the store.
	usedPrefix = "front-logout."
)

// logout is the endpoint for logout tokens of the issuer (OpenID Connect Back-Channel Logout 1.0, section 2.5).
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	form, ok := s.form(w, r)
	if !ok {
		return
	}
	out, err := s.logoutToken(r.Context(), form.Get("logout_token"))
	if err == nil {
		err = s.loggedOut(r.Context(), out)
	}
	switch {
	case err == nil:
		w.WriteHeader(http.StatusOK)
	case errors.Is(err, identity.ErrUnavailable), errors.Is(err, errUnavailable):
		refuse(w, errUnavailable)
	default:
		s.o.Log.Warn("a logout token is refused", "reason", err, "remote", r.RemoteAddr)
		httpd.WriteJSON(w, http.StatusBadRequest, &fault{"invalid_request", "this is no logout token for this mcpx"})
	}
}

// logoutClaims are what a logout token says.
type logoutClaims struct {
	ID      string
	Issued  time.Time
	Subject string
	Session string
}

// logoutToken checks a logout token (section 2.6) and returns its claims.
func (s *Server) logoutToken(ctx context.Context, raw string) (*logoutClaims, error) {
	if raw == "" {
		return nil, errors.New("logout_token is missing")
	}
	claims := jwt.MapClaims{}
	token, err := s.oidc.keys.Parse(ctx, raw, claims, jwt.WithAudience(s.o.ClientID), jwt.WithIssuedAt())
	if err != nil {
		return nil, err
	}
	kind, _ := token.Header["typ"].(string)
	_, critical := token.Header["crit"]
	events, _ := claims["events"].(map[string]any)
	_, event := events[logoutEvent].(map[string]any)
	_, nonce := claims["nonce"]
	issued, _ := claims.GetIssuedAt()
	out := &logoutClaims{}
	out.ID, _ = claims["jti"].(string)
	out.Subject, _ = claims["sub"].(string)
	out.Session, _ = claims["sid"].(string)
	switch {
	case !slices.Contains([]string{"", "jwt", "logout+jwt"}, strings.TrimPrefix(strings.ToLower(kind), "application/")):
		return nil, errors.New("it is of another type (typ)")
	case critical:
		return nil, errors.New("it has critical parameters (crit) that are not supported")
	case !event:
		return nil, errors.New("it has no logout event")
	case nonce:
		return nil, errors.New("it has a nonce, as ID tokens do")
	case issued == nil || time.Since(issued.Time) > logoutTime:
		return nil, errors.New("it is too old, or does not say when it was issued")
	case out.ID == "":
		return nil, errors.New("it has no ID (jti)")
	case out.Subject == "" && out.Session == "":
		return nil, errors.New("it names neither a user nor a session")
	}
	out.Issued = issued.Time
	return out, nil
}

// loggedOut ends the logins that a logout token names: the logins of a session or, if it names no session, all logins of a user.
func (s *Server) loggedOut(ctx context.Context, out *logoutClaims) error {
	key := usedPrefix + strings.TrimPrefix(keyOf(s.o.Issuer+" "+out.ID), storePrefix)
	err := s.store.Change(ctx, key, func(old []byte) ([]byte, time.Time, error) {
		if old != nil {
			return nil, time.Time{}, errNothing
		}
		return json.RawMessage("true"), out.Issued.Add(logoutTime + time.Minute), nil
	})
	if errors.Is(err, errNothing) {
		return errors.New("it was used before")
	} else if err != nil {
		return errUnavailable
	}
	for _, g := range s.validGrants() {
		named := out.Session == "" || g.Issued.Session == out.Session
		if (out.Subject == "" || g.Who.Subject == out.Subject) && named {
			if _, err := s.end(ctx, g.Number, "logged out at the issuer"); err != nil {
				_ = s.store.Change(ctx, key, func([]byte) ([]byte, time.Time, error) { return nil, time.Now(), nil })
				return err // the issuer may send the token again, so it is marked as unused
			}
		}
	}
	return nil
}
