package identity

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"mcpx/internal/caller"
)

const (
	// leeway is how far the clock of an issuer may be off.
	leeway = 30 * time.Second
	// keepVerified is how long a verified token is cached. maxVerified is the size of the cache ([lru.Map]).
	keepVerified = time.Minute
	maxVerified  = 2048
)

// algorithms are the accepted signature algorithms. All are asymmetric. If "none" were accepted, anyone could make tokens. If HMAC
// were, anyone who knows the public key could.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

var parser = jwt.NewParser(jwt.WithValidMethods(algorithms), jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithStrictDecoding())

// claims are the claims of a JWT (RFC 9068). The case of their names matters. encoding/json would ignore it, and a claim "Sub",
// which a user may be able to choose, would replace "sub".
type claims struct {
	jwt.RegisteredClaims
	all     json.RawMessage
	members map[string]json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *claims) UnmarshalJSON(data []byte) error {
	c.all = slices.Clone(data)
	if err := json.Unmarshal(data, &c.members); err != nil {
		return err
	}
	for name, into := range map[string]any{"iss": &c.Issuer, "sub": &c.Subject, "aud": &c.Audience, "exp": &c.ExpiresAt, "nbf": &c.NotBefore} {
		if value := c.members[name]; value != nil {
			if err := json.Unmarshal(value, into); err != nil {
				return fmt.Errorf("the claim %s: %w", name, err)
			}
		}
	}
	return nil
}

// list returns the strings of a claim that is a string or a list of strings. It returns nil for any other claim.
func (c *claims) list(name string) (all []string) {
	if json.Unmarshal(c.members[name], &all) == nil {
		return all
	}
	var one string
	if json.Unmarshal(c.members[name], &one) == nil && one != "" {
		return []string{one}
	}
	return nil
}

// value returns the decoded JSON value of a claim. there is false if the token has no such claim.
func (c *claims) value(name string) (value any, there bool) {
	raw, there := c.members[name]
	_ = json.Unmarshal(raw, &value)
	return value, there
}

// scopes returns the scopes of a token, from the claims scope and scp (used by Entra and Okta). Each of these claims
// is a list of strings, or one string with spaces between the scopes.
func (c *claims) scopes() (all []string) {
	for _, name := range []string{"scope", "scp"} {
		for _, text := range c.list(name) {
			all = append(all, strings.Fields(text)...)
		}
	}
	return all
}

// verified is a JWT whose signature and times are valid. Its audience still has to be checked for each request.
type verified struct {
	principal *caller.Principal
	issuer    *issuer
	audience  []string
	expires   time.Time // includes the leeway
	until     time.Time // when the cache entry ends
}

// verify checks a JWT, but not its audience and scopes, and not whether another subject uses the same name. It caches the result
// for keepVerified, by the digest of the token. The error wraps ErrUnavailable or ErrInvalid.
func (s *State) verify(ctx context.Context, token string, digest [sha256.Size]byte) (*verified, error) {
	now := time.Now()
	s.mu.Lock()
	v := s.verified.Find(digest)
	s.mu.Unlock()
	if v != nil && now.Before(v.until) {
		return v, nil
	}
	c, from := &claims{}, (*issuer)(nil)
	_, err := parser.ParseWithClaims(token, c, func(t *jwt.Token) (any, error) {
		if err := checkHeader(t.Header); err != nil {
			return nil, err
		}
		if from = s.issuers[c.Issuer]; from == nil {
			return nil, errors.New("no such issuer is configured")
		}
		return from.key(ctx, t)
	})
	switch {
	case errors.Is(err, ErrUnavailable):
		return nil, ErrUnavailable
	case err != nil:
		return nil, invalid(err)
	case c.Subject == "":
		return nil, invalid(errors.New("the token has no subject"))
	}
	p, err := from.principal(c)
	if err != nil {
		return nil, invalid(err)
	}
	v = &verified{issuer: from, principal: p, expires: c.ExpiresAt.Add(leeway), until: now.Add(keepVerified)}
	for _, audience := range c.Audience {
		v.audience = append(v.audience, canonical(audience))
	}
	if expires := c.ExpiresAt.Time; expires.Before(v.until) {
		v.until = expires
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verified.Put(digest, v)
	return v, nil
}

// checkHeader returns an error for a JWT that is not an access token, such as a logout token, and for a JWT with critical
// parameters (crit), because mcpx supports none.
func checkHeader(header map[string]any) error {
	typ, _ := header["typ"].(string)
	switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
	case "", "jwt", "at+jwt":
	default:
		return errors.New("the token is not an access token (typ)")
	}
	if _, critical := header["crit"]; critical {
		return errors.New("the token has critical parameters (crit) that are not supported")
	}
	return nil
}

func (i *issuer) principal(c *claims) (*caller.Principal, error) {
	naming := Naming{Principal: i.PrincipalClaim, Display: i.DisplayClaim}
	value, err := naming.Value(c.value)
	if err != nil {
		return nil, err
	}
	p := Named(i.URL, c.Subject, value)
	p.Display = naming.Shown(c.value)
	p.Groups, p.Scopes, p.Claims = c.list(i.GroupsClaim), c.scopes(), c.all
	return p, nil
}

// invalid returns an error that wraps ErrInvalid and the reason, which is for the log.
func invalid(why error) error { return fmt.Errorf("%w: %w", ErrInvalid, why) }
