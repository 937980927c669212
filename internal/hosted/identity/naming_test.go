package identity

import (
	"crypto"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
)

func TestNaming(t *testing.T) {
	for _, test := range []struct {
		name   string
		naming Naming
		claims map[string]any
		want   string
		fault  string
	}{
		{"the subject", Naming{}, map[string]any{"email": "ann@x.test"}, "", ""},
		{"sub is the subject", Naming{Principal: "sub"}, nil, "", ""},
		{"another claim", Naming{Principal: "upn"}, map[string]any{"upn": "Ann.E"}, "Ann.E", ""},
		{"missing", Naming{Principal: "upn"}, nil, "", "missing"},
		{"no text", Naming{Principal: "upn"}, map[string]any{"upn": 7.0}, "", "missing"},
		{"with a space", Naming{Principal: "upn"}, map[string]any{"upn": "Ann E"}, "", "cannot be a name"},
		{"with a zero-width letter", Naming{Principal: "upn"}, map[string]any{"upn": "ann\u200b"}, "", "cannot be a name"},
		{"with a line break", Naming{Principal: "upn"}, map[string]any{"upn": "ann\nbob"}, "", "cannot be a name"},
		{"too long", Naming{Principal: "upn"}, map[string]any{"upn": strings.Repeat("a", 201)}, "", "cannot be a name"},
		{"a verified address", Naming{Principal: "email"}, map[string]any{"email": "Ann@X.test", "email_verified": true}, "ann@x.test", ""},
		{"verified as a text", Naming{Principal: "email"}, map[string]any{"email": "ann@x.test", "email_verified": "true"}, "ann@x.test", ""},
		{"an address that is not verified", Naming{Principal: "email", Unverified: true}, map[string]any{"email": "ann@x.test", "email_verified": false}, "", "verified"},
		{"an address of which nothing is said", Naming{Principal: "email"}, map[string]any{"email": "ann@x.test"}, "", "verified"},
		{"verified is null", Naming{Principal: "email", Unverified: true}, map[string]any{"email": "ann@x.test", "email_verified": nil}, "", "verified"},
		{"the same, accepted", Naming{Principal: "email", Unverified: true}, map[string]any{"email": "ann@x.test"}, "ann@x.test", ""},
		{"the Kelvin sign, a k in lower case", Naming{Principal: "email"}, map[string]any{"email": "\u212aim@x.test", "email_verified": true}, "", "ASCII"},
	} {
		got, err := test.naming.Value(func(name string) (any, bool) {
			value, there := test.claims[name]
			return value, there
		})
		if got != test.want || (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: %q, %v", test.name, got, err)
		}
	}
}

// TestNames: two subjects of an issuer never have one name at the same time.
func TestNames(t *testing.T) {
	n, now := newNames(), time.Now()
	ann, other := Named("https://a.test", "1", "ann"), Named("https://a.test", "2", "ann")
	if !n.take(ann, now) || !n.take(ann, now.Add(1)) || n.take(other, now.Add(NameHeld)) {
		t.Error("the name passes to another subject")
	}
	if !n.take(Named("https://b.test", "2", "ann"), now) {
		t.Error("the name at another issuer is not free")
	}
	if !n.take(other, now.Add(NameHeld+1)) || n.take(ann, now.Add(NameHeld+1)) {
		t.Error("an address that was given to somebody else stays with the first")
	}
}

// TestJWT_Names: if an issuer has a principal_claim, the principals of its tokens are named by this claim. No two subjects get
// the same name.
func TestJWT_Names(t *testing.T) {
	i := newTestIssuer(t, "")
	i.set(false, map[string]crypto.Signer{"k": ecKey()})
	v := trusting(t, func(o *Options) {
		o.Issuers = []conf.Issuer{{URL: i.URL, PrincipalClaim: "email", DisplayClaim: "name"}}
	})
	token := func(sub, email string, verified any) string {
		return sign(t, jwt.SigningMethodES256, ecKey(), i.URL, map[string]any{
			"sub": sub, "email": email, "email_verified": verified, "name": "Ann \u202eExample",
		}, nil)
	}
	principal := func(token string) (*caller.Principal, error) {
		proof, err := v.Request(requestAt("/mcp", token))
		if err != nil {
			return nil, err
		}
		return proof.Principal, nil
	}
	host := strings.TrimPrefix(i.URL, "http://")
	p, err := principal(token("1", "Ann@x.test", true))
	if err != nil || p.Name != "ann@x.test@"+host || p.ID != i.URL+" 1" || p.Display != "Ann Example" {
		t.Errorf("%+v, %v", p, err)
	}
	for name, other := range map[string]string{
		"another subject with the address": token("2", "ann@x.test", true), "not verified": token("1", "bob@x.test", false),
		"without an address": token("3", "", true),
	} {
		if p, err := principal(other); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if p, err := principal(token("2", "bob@x.test", true)); err != nil || p.Name != "bob@x.test@"+host {
		t.Errorf("%+v, %v", p, err)
	}
}
