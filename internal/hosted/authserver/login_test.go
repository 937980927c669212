package authserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"mcpx/internal/base/conf"
	"mcpx/internal/hosted/identity"
)

var quiet = slog.New(slog.DiscardHandler)

// TestLogin_Refused: an invalid response from the issuer, or from an attacker who imitates it, does not log in a
// user.
func TestLogin_Refused(t *testing.T) {
	foreign, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	claim := func(name string, value any) func(*issuer) {
		return func(i *issuer) {
			i.change = func(claims jwt.MapClaims) {
				if claims[name] = value; value == nil {
					delete(claims, name)
				}
			}
		}
	}
	answer := func(name string, values ...string) func(*issuer) {
		return func(i *issuer) { i.answer = func(back url.Values) { back[name] = values } }
	}
	metadata := func(name string, value any) func(*issuer) {
		return func(i *issuer) { i.lies = func(m map[string]any) { m[name] = value } }
	}
	for _, test := range []struct {
		name, code, log string
		lie             func(*issuer)
	}{
		{"another nonce", "server_error", "wrong nonce", claim("nonce", "x")},
		{"no nonce", "server_error", "wrong nonce", claim("nonce", nil)},
		{"another audience", "server_error", "aud", claim("aud", "other")},
		{"no audience", "server_error", "aud", claim("aud", nil)},
		{"two audiences", "server_error", "another client", claim("aud", []string{"mcpx", "other"})},
		{"another party", "server_error", "another client", claim("azp", "other")},
		{"another issuer", "server_error", "iss", claim("iss", "https://other.example")},
		{"expired", "server_error", "expired", claim("exp", time.Now().Add(-time.Hour).Unix())},
		{"without end", "server_error", "exp", claim("exp", nil)},
		{"from the future", "server_error", "used before issued", claim("iat", time.Now().Add(time.Hour).Unix())},
		{"nobody", "server_error", "has no subject", claim("sub", nil)},
		{"too many groups", "access_denied", "too many groups", claim("groups", slices.Repeat([]string{"a group with a long name"}, 200))},
		{"no signature", "server_error", "signing method", func(i *issuer) {
			i.sign = func(claims jwt.MapClaims) string {
				text, _ := jwt.NewWithClaims(jwt.SigningMethodNone, claims).SignedString(jwt.UnsafeAllowNoneSignatureType)
				return text
			}
		}},
		{"the public key as a secret", "server_error", "signing method", func(i *issuer) {
			i.sign = func(claims jwt.MapClaims) string {
				public, _ := i.key.PublicKey.Bytes()
				token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
				token.Header["kid"] = "one"
				text, _ := token.SignedString(public)
				return text
			}
		}},
		{"another key", "server_error", "signature is invalid", func(i *issuer) {
			i.sign = func(claims jwt.MapClaims) string { return i.signed(claims, foreign) }
		}},
		{"no token", "server_error", "malformed", func(i *issuer) { i.sign = func(jwt.MapClaims) string { return "" } }},
		{"mix-up", "server_error", "comes from another issuer", answer("iss", "https://other.example")},
		{"two issuers", "server_error", "comes from another issuer", func(i *issuer) { answer("iss", i.url, i.url)(i) }},
		{"no issuer in the answer", "server_error", "comes from another issuer", answer("iss")},
		{"another code", "server_error", "invalid_grant", answer("code", "made up")},
		{"the person says no", "access_denied", "refused", answer("error", "access_denied")},
		{"the issuer is broken", "server_error", "temporarily", answer("error", "temporarily_unavailable")},
		{"metadata of another", "temporarily_unavailable", "another issuer", metadata("issuer", "https://other.example")},
		{"no keys", "temporarily_unavailable", "lacks an endpoint", metadata("jwks_uri", "")},
		{"keys without TLS", "temporarily_unavailable", "lacks an endpoint", metadata("jwks_uri", "http://other.example/")},
		{"keys inside", "server_error", "not public", metadata("jwks_uri", "https://10.0.0.1/")},
		{"a token endpoint inside", "server_error", "not public", metadata("token_endpoint", "https://169.254.169.254/")},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t)
			test.lie(s.issuer)
			back := s.allow(s.query(s.registered(claude), claude))
			if back.Get("error") != test.code || back.Has("code") || back.Get("state") != "state of the client" || back.Get("iss") != s.server.issuer {
				t.Errorf("%v", back)
			}
			if !strings.Contains(s.log.String(), test.log) {
				t.Errorf("the log lacks %q:\n%s", test.log, s.log)
			}
		})
	}
}

// TestCallback: only the browser that began a login can finish it, and only once.
func TestCallback(t *testing.T) {
	s := newSite(t)
	var back url.Values
	s.issuer.answer = func(values url.Values) { back = values }
	query := s.query(s.registered(claude), claude)
	// The browser does not follow the redirect from the issuer to the callback.
	follow := s.browser.CheckRedirect
	s.browser.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if next.URL.Path == callbackPath {
			return http.ErrUseLastResponse
		}
		return follow(next, via)
	}
	_, text, _ := s.open(query)
	resp, err := s.browser.PostForm(s.server.issuer+authorizePath+"?"+query.Encode(), url.Values{"page": {pageField.FindStringSubmatch(text)[1]}, "answer": {"allow"}})
	if err != nil {
		t.Fatal(err)
	}
	s.read(resp)
	callback := func(values url.Values) (int, *url.URL) {
		status, _, to := s.get(s.server.issuer + callbackPath + "?" + values.Encode())
		return status, to
	}
	own := s.browser
	s.browser = s.newBrowser()
	if status, to := callback(back); status != 400 || to != nil {
		t.Errorf("another browser: %d %v", status, to)
	}
	s.browser = own
	for _, state := range [][]string{nil, {""}, {"x"}, {back.Get("state"), back.Get("state")}} {
		if status, to := callback(url.Values{"code": back["code"], "iss": back["iss"], "state": state}); status != 400 || to != nil {
			t.Errorf("state %q: %d %v", state, status, to)
		}
	}
	if status, to := callback(back); to == nil || !to.Query().Has("code") {
		t.Fatalf("%d %v\n%s", status, to, s.log)
	}
	if status, to := callback(back); status != 400 || to != nil {
		t.Errorf("a second time: %d %v", status, to)
	}
}

// TestAllow checks which users the setting Allow permits.
func TestAllow(t *testing.T) {
	user := func(claims jwt.MapClaims, allow conf.Allow) string {
		l := newOIDCClient(&Options{AuthServer: conf.AuthServer{Allow: allow, GroupsClaim: "groups"}}, "")
		claims["sub"] = "ann"
		who, err := l.user(claims)
		if err != nil {
			return err.Error()
		}
		return who.Subject + " " + who.Email
	}
	const no = "this account may not use this mcpx"
	for _, test := range []struct {
		name   string
		claims jwt.MapClaims
		allow  conf.Allow
		want   string
	}{
		{"everybody", jwt.MapClaims{}, conf.Allow{}, "ann "},
		{"nobody", jwt.MapClaims{}, conf.Allow{Emails: []string{}}, no},
		{"a domain", jwt.MapClaims{"email": "Ann@Example.com", "email_verified": true}, conf.Allow{Emails: []string{"*@example.com"}}, "ann Ann@Example.com"},
		{"not said to be verified", jwt.MapClaims{"email": "ann@example.com"}, conf.Allow{Emails: []string{"*@example.com"}}, no},
		{"null", jwt.MapClaims{"email": "ann@example.com", "email_verified": nil}, conf.Allow{Emails: []string{"*@example.com"}, UnverifiedEmails: true}, no},
		{"need not be verified", jwt.MapClaims{"email": "ann@example.com"}, conf.Allow{Emails: []string{"*@example.com"}, UnverifiedEmails: true}, "ann ann@example.com"},
		{"said not to be verified", jwt.MapClaims{"email": "ann@example.com", "email_verified": false}, conf.Allow{Emails: []string{"*@example.com"}, UnverifiedEmails: true}, no},
		{"by a group", jwt.MapClaims{"email": "ann@example.com", "groups": "b"}, conf.Allow{Emails: []string{"*@example.com"}, Groups: []string{"b"}}, "ann ann@example.com"},
		{"another domain", jwt.MapClaims{"email": "ann@example.com.evil.example", "email_verified": true}, conf.Allow{Emails: []string{"*@example.com"}}, no},
		{"no address", jwt.MapClaims{}, conf.Allow{Emails: []string{"*"}}, no},
		{"not verified", jwt.MapClaims{"email": "ann@example.com", "email_verified": false, "name": "Ann"}, conf.Allow{Emails: []string{"*@example.com"}}, no},
		{"verified by a strange value", jwt.MapClaims{"email": "ann@example.com", "email_verified": 1}, conf.Allow{Emails: []string{"*@example.com"}}, no},
		{"verified", jwt.MapClaims{"email": "ann@example.com", "email_verified": "true"}, conf.Allow{Emails: []string{"*@example.com"}}, "ann ann@example.com"},
		{"a group", jwt.MapClaims{"groups": []any{"a", "b"}, "name": "Ann"}, conf.Allow{Groups: []string{"b"}}, "ann "},
		{"one group as text", jwt.MapClaims{"groups": "b"}, conf.Allow{Groups: []string{"b"}}, "ann "},
		{"a group is no glob", jwt.MapClaims{"groups": []any{"bb"}}, conf.Allow{Groups: []string{"b*"}}, no},
		{"a subject", jwt.MapClaims{}, conf.Allow{Subjects: []string{"ann"}, Groups: []string{"x"}}, "ann "},
		{"another", jwt.MapClaims{"email": "ann@example.com"}, conf.Allow{Subjects: []string{"bob"}, Emails: []string{"bob@*"}}, no},
	} {
		if got := user(test.claims, test.allow); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestUserInfo: claims that the ID token lacks are taken from UserInfo, if UserInfo is about the same user. Claims of
// the ID token take precedence.
func TestUserInfo(t *testing.T) {
	for _, test := range []struct {
		info map[string]any
		want string
	}{
		{map[string]any{"sub": "ann", "email": "ann@example.org", "groups": []string{"admins"}}, "ann@example.org"},
		{map[string]any{"sub": "bob", "email": "bob@example.org"}, ""},
	} {
		s := newSite(t)
		s.issuer.info = test.info
		s.issuer.change = func(claims jwt.MapClaims) { delete(claims, "email") }
		proof := s.server.Prove(s.connected(s.registered(claude), claude)["access_token"].(string))
		if proof == nil {
			t.Fatal("the token does not count")
		}
		who := proof.Principal
		var claims struct{ Sub, Email string }
		if err := json.Unmarshal(who.Claims, &claims); err != nil || claims.Sub != "ann" || claims.Email != test.want || !slices.Equal(who.Groups, []string{"staff"}) {
			t.Errorf("%s %v, want %s", who.Claims, err, test.want)
		}
	}
}

// TestAllow_Later: if the config no longer allows a user, the user's tokens are refused from then on.
func TestAllow_Later(t *testing.T) {
	s := newSite(t)
	client := s.registered(claude)
	tokens := s.connected(client, claude)
	s.server.o.Allow = conf.Allow{Subjects: []string{"bob"}}
	if status, answer := s.refresh(client, tokens); status != 400 || s.counts(tokens) {
		t.Errorf("%d %v", status, answer)
	}
}

// TestPrincipalClaim: users are named by the claim in PrincipalClaim. An address must be verified by the issuer. If the config
// then takes names from another claim, older logins end.
func TestPrincipalClaim(t *testing.T) {
	s := newSite(t, func(o *Options) { o.PrincipalClaim, o.DisplayClaim = "email", "name" })
	s.issuer.change = func(c jwt.MapClaims) { c["email"], c["name"] = "Ann@Example.com", "Ann" }
	client := s.registered(claude)
	tokens := s.connected(client, claude)
	proof := s.server.Prove(tokens["access_token"].(string))
	if host := strings.TrimPrefix(s.issuer.url, "http://"); proof == nil || proof.Principal.Name != "ann@example.com@"+host ||
		proof.Principal.ID != s.issuer.url+" ann" || proof.Principal.Display != "Ann" {
		t.Fatalf("%+v", proof)
	}
	s.server.o.PrincipalClaim = "nickname"
	if status, _ := s.refresh(client, tokens); status != 400 || s.counts(tokens) {
		t.Errorf("a name of another claim counts: %d", status)
	}
	s.server.o.PrincipalClaim = "email"
	for name, change := range map[string]func(jwt.MapClaims){
		"not verified": func(c jwt.MapClaims) { c["email_verified"] = false }, "nothing said": func(c jwt.MapClaims) { delete(c, "email_verified") },
		"no address": func(c jwt.MapClaims) { delete(c, "email") },
	} {
		s.issuer.change = change
		if back := s.allow(s.query(client, claude)); back.Get("error") != "access_denied" || !strings.Contains(back.Get("error_description"), "principal_claim") {
			t.Errorf("%s: %v", name, back)
		}
	}
	// The userinfo endpoint says that another address is verified.
	s.issuer.change = func(c jwt.MapClaims) { c["email"] = "boss@example.com"; delete(c, "email_verified") }
	s.issuer.info = map[string]any{"sub": "ann", "email": "ann@example.com", "email_verified": true}
	if back := s.allow(s.query(client, claude)); back.Get("error") != "access_denied" {
		t.Errorf("an address that nobody has verified: %v", back)
	}
}

// TestSecret_InBody: the client secret is sent in the request body if the issuer requires that.
func TestSecret_InBody(t *testing.T) {
	l := newOIDCClient(&Options{AuthServer: conf.AuthServer{ClientID: "mcpx", ClientSecret: "x"}}, "")
	for _, test := range []struct {
		methods []string
		want    int
	}{{nil, 2}, {[]string{"client_secret_basic", "client_secret_post"}, 2}, {[]string{"client_secret_post"}, 1}} {
		if got := l.config(&provider{Methods: test.methods}).Endpoint.AuthStyle; int(got) != test.want {
			t.Errorf("%v: %d", test.methods, got)
		}
	}
}

// TestChallenge: a string that cannot be a SHA-256 hash is refused as code_challenge.
func TestChallenge(t *testing.T) {
	good := base64.RawURLEncoding.EncodeToString(make([]byte, 32))
	for text, want := range map[string]bool{good: true, good + "A": false, good[1:]: false, good[1:] + "+": false, "": false} {
		if challenge(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// TestLogin_Named: while somebody is logged in under a name, another subject of the issuer does not get the same name, neither
// at a login nor at a renewal. A day after the last renewal of that login, the name is free.
func TestLogin_Named(t *testing.T) {
	s := newSite(t, func(o *Options) { o.PrincipalClaim = "email" })
	client := s.registered(claude)
	as := func(sub, email string) {
		s.issuer.with(func() {
			s.issuer.change = func(claims jwt.MapClaims) { claims["sub"], claims["email"] = sub, email }
		})
	}
	refused := func(what string) {
		t.Helper()
		if back := s.allow(s.query(client, claude)); back.Get("error") != "access_denied" || !strings.Contains(back.Get("error_description"), "another subject") {
			t.Errorf("%s: %v", what, back)
		}
	}
	first := s.connected(client, claude)
	if s.connected(client, claude); !s.counts(first) {
		t.Error("a second login of the same subject has ended the first")
	}
	as("bob", "ann@example.com")
	refused("a login of another subject")
	as("bob", "bob@example.com")
	second := s.connected(client, claude)
	as("bob", "ann@example.com")
	if status, answer := s.refresh(client, second); status != http.StatusBadRequest || answer["error"] != "invalid_grant" || s.counts(second) {
		t.Errorf("a renewal with the name of another: %d %v", status, answer)
	}
	for _, g := range s.server.validGrants() {
		if _, err := s.server.change(t.Context(), g.Number, func(g *grant) error {
			g.Renewed -= int64(identity.NameHeld / time.Second)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	s.connected(client, claude)
	as("ann", "ann@example.com")
	if status, _ := s.refresh(client, first); status != http.StatusBadRequest {
		t.Errorf("the first one, when the name is another's: %d", status)
	}
}
