package identity

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"mcpx/internal/base/conf"
)

// testIssuer is an authorization server that serves only its metadata and keys.
type testIssuer struct {
	*httptest.Server
	form    string      // path of its metadata
	moved   atomic.Bool // its keys have moved from /keys to /moved
	fetches atomic.Int32
	asked   atomic.Int32 // number of requests to any path

	mu       sync.Mutex
	down     bool
	keysDown bool                     // only the keys cannot be read
	hung     chan struct{}            // if not nil, the metadata is not answered, and each request for it is sent here
	keys     map[string]crypto.Signer // by key ID (kid)
	odd      []json.RawMessage        // further keys
}

func newTestIssuer(t testing.TB, path string) *testIssuer {
	i := &testIssuer{keys: make(map[string]crypto.Signer)}
	mux := http.NewServeMux()
	where := func() string {
		if i.moved.Load() {
			return "/moved"
		}
		return "/keys"
	}
	mux.HandleFunc("GET /{keys}", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != where() {
			http.NotFound(w, r)
			return
		}
		i.fetches.Add(1)
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.keysDown {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		set := struct {
			Keys []any `json:"keys"`
		}{}
		for _, one := range i.odd {
			set.Keys = append(set.Keys, one)
		}
		for kid, key := range i.keys {
			one, err := jwkset.NewJWKFromKey(key.Public(), jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: kid, USE: jwkset.UseSig}})
			if err != nil {
				t.Error(err)
			}
			set.Keys = append(set.Keys, one.Marshal())
		}
		_ = json.NewEncoder(w).Encode(set)
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != cmpOr(i.form, "/.well-known/oauth-authorization-server"+path) {
			http.NotFound(w, r)
			return
		}
		i.mu.Lock()
		hung := i.hung
		i.mu.Unlock()
		if hung != nil {
			hung <- struct{}{}
			<-r.Context().Done()
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL + path, "jwks_uri": i.URL + where()})
	})
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.asked.Add(1)
		i.mu.Lock()
		down := i.down
		i.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (i *testIssuer) set(down bool, keys map[string]crypto.Signer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down, i.keys = down, keys
}

var rsaKey, ecKey, otherKey = sync.OnceValue(newRSA), sync.OnceValue(newEC), sync.OnceValue(newRSA)

func newRSA() crypto.Signer {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

func newEC() crypto.Signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

// sign makes a JWT with the key ID "k". claims and header replace the default ones; a nil value removes one.
func sign(t testing.TB, method jwt.SigningMethod, key any, issuer string, claims, header map[string]any) string {
	t.Helper()
	all := jwt.MapClaims{"iss": issuer, "sub": "alice", "aud": "https://mcp.example.com/mcp", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	token := jwt.NewWithClaims(method, all)
	token.Header["kid"] = "k"
	maps.Copy(token.Header, header)
	maps.DeleteFunc(token.Header, func(_ string, v any) bool { return v == nil })
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// trusting returns a verifier that trusts these issuers. The endpoint's URL is https://mcp.example.com/mcp.
func trusting(t testing.TB, change func(*Options), issuers ...string) *changing {
	o := &Options{Resource: &url.URL{Scheme: "https", Host: "mcp.example.com", Path: "/mcp"}}
	for _, one := range issuers {
		o.Issuers = append(o.Issuers, conf.Issuer{URL: one, GroupsClaim: "groups"})
	}
	if change != nil {
		change(o)
	}
	v := verifierOf(o)
	t.Cleanup(func() { v.SetOptions(nil) })
	return v
}

func requestAt(path, token string) *http.Request {
	r := requestWith("Bearer " + token)
	r.URL, r.Host = &url.URL{Path: path}, "mcp.example.com"
	return r
}

// TestJWT_Attacks: only tokens that the issuer has made for mcpx are valid. For other tokens, the answer does not
// tell the reason.
func TestJWT_Attacks(t *testing.T) {
	i := newTestIssuer(t, "")
	i.set(false, map[string]crypto.Signer{"k": rsaKey(), "e": ecKey()})
	v := trusting(t, nil, i.URL)
	public, err := x509.MarshalPKIXPublicKey(rsaKey().Public())
	if err != nil {
		t.Fatal(err)
	}
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	rs := func(claims, header map[string]any) string {
		return sign(t, jwt.SigningMethodRS256, rsaKey(), i.URL, claims, header)
	}
	type m = map[string]any
	good := rs(nil, nil)
	parts := strings.Split(good, ".")
	for name, token := range map[string]string{
		"good":              good,
		"good, EC":          sign(t, jwt.SigningMethodES256, ecKey(), i.URL, nil, m{"kid": "e"}),
		"good, PS":          sign(t, jwt.SigningMethodPS256, rsaKey(), i.URL, nil, nil),
		"good, no kid":      rs(nil, m{"kid": nil}),
		"good, at+jwt":      rs(nil, m{"typ": "application/AT+JWT"}),
		"good, one of many": rs(m{"aud": []string{"https://other.example", "HTTPS://MCP.example.com:443/mcp/#x"}}, nil),
		"good, a view":      rs(m{"aud": "https://mcp.example.com/mcp/tools"}, nil),
		"good, just over":   rs(m{"exp": time.Now().Add(-2 * time.Second).Unix()}, nil),

		"foreign audience":        rs(m{"aud": "https://other.example/mcp"}, nil),
		"an audience above":       rs(m{"aud": "https://mcp.example.com"}, nil),
		"another view":            rs(m{"aud": "https://mcp.example.com/mcp/servers/x"}, nil),
		"no audience":             rs(m{"aud": nil}, nil),
		"empty audience":          rs(m{"aud": []string{}}, nil),
		"expired":                 rs(m{"exp": time.Now().Add(-time.Minute).Unix()}, nil),
		"no expiry":               rs(m{"exp": nil}, nil),
		"not yet":                 rs(m{"nbf": time.Now().Add(time.Hour).Unix()}, nil),
		"foreign issuer":          rs(m{"iss": "https://other.example"}, nil),
		"issuer with a slash":     rs(m{"iss": i.URL + "/"}, nil),
		"no issuer":               rs(m{"iss": nil}, nil),
		"no subject":              rs(m{"sub": nil}, nil),
		"a subject in capitals":   rs(m{"sub": nil, "Sub": "alice"}, nil),
		"an audience in capitals": rs(m{"aud": nil, "AUD": "https://mcp.example.com/mcp"}, nil),
		"alg none":                sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, i.URL, nil, nil),
		"HS256 over the key":      sign(t, jwt.SigningMethodHS256, publicPEM, i.URL, nil, nil),
		"HS256 over its DER":      sign(t, jwt.SigningMethodHS256, public, i.URL, nil, nil),
		"another key":             sign(t, jwt.SigningMethodRS256, otherKey(), i.URL, nil, nil),
		"another key, no kid":     sign(t, jwt.SigningMethodRS256, otherKey(), i.URL, nil, m{"kid": nil}),
		"the kid of another kind": sign(t, jwt.SigningMethodES256, ecKey(), i.URL, nil, nil),
		"a key of its own":        sign(t, jwt.SigningMethodRS256, otherKey(), i.URL, nil, m{"jwk": m{"kty": "RSA"}, "jku": i.URL + "/evil"}),
		"kid is no text":          rs(nil, m{"kid": 5}),
		"critical":                rs(nil, m{"crit": []string{"x"}, "x": 1}),
		"logout token":            rs(nil, m{"typ": "logout+jwt"}),
		"proof of a key":          rs(nil, m{"typ": "dpop+jwt"}),
		"assertion grant":         rs(nil, m{"typ": "oauth-id-jag+jwt"}),
		"no signature":            parts[0] + "." + parts[1] + ".",
		"other claims":            parts[0] + "." + strings.Split(rs(m{"sub": "root"}, nil), ".")[1] + "." + parts[2],
		"cut":                     good[:len(good)-4],
		"five parts":              good + ".x.y",
		"not base64":              "a.b.c",
	} {
		proof, err := v.Request(requestAt("/mcp/tools", token))
		switch {
		case !strings.HasPrefix(name, "good"):
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%s: %+v, %v", name, proof, err)
			}
		case err != nil || proof.Principal.Key() != i.URL+" alice":
			t.Errorf("%s: %+v, %v", name, proof, err)
		}
	}
	if i.fetches.Load() != 1 || i.asked.Load() != 2 {
		t.Errorf("the issuer was asked for keys %d times, in all %d", i.fetches.Load(), i.asked.Load())
	}
}

// TestJWT_Principal checks which principal a token yields.
func TestJWT_Principal(t *testing.T) {
	i := newTestIssuer(t, "/realms/a")
	i.set(false, map[string]crypto.Signer{"k": ecKey()})
	issuer := i.URL + "/realms/a"
	v := trusting(t, func(o *Options) { o.Scopes = []string{"mcp:read", "mcp:list"} }, issuer)
	type m = map[string]any
	for _, test := range []struct {
		claims          m
		groups, missing []string
	}{
		{m{"scope": "mcp:read mcp:list x", "groups": []string{"dev", "ops"}}, []string{"dev", "ops"}, nil},
		{m{"scope": []string{"mcp:read", "mcp:list"}, "groups": "dev"}, []string{"dev"}, nil},
		{m{"scp": []string{"mcp:list", "mcp:read"}, "groups": 5}, nil, nil},
		{m{"scp": "mcp:list mcp:read", "groups": m{}}, nil, nil},
		{m{"scp": "mcp:list", "scope": "mcp:read"}, nil, nil},
		{m{"scope": "mcp:*"}, nil, nil},
		{m{"scope": "mcp:list"}, nil, []string{"mcp:read"}},
		{m{"scope": "mcp"}, nil, []string{"mcp:read", "mcp:list"}},
		{m{}, nil, []string{"mcp:read", "mcp:list"}},
	} {
		proof, err := v.Request(requestAt("/mcp", sign(t, jwt.SigningMethodES256, ecKey(), issuer, test.claims, nil)))
		if lacks, _ := errors.AsType[*ScopeError](err); lacks != nil || test.missing != nil {
			if lacks == nil || !slices.Equal(lacks.Missing, test.missing) {
				t.Errorf("%v: %+v, %v, want missing %q", test.claims, proof, err, test.missing)
			}
			continue
		}
		if err != nil || !slices.Equal(proof.Principal.Groups, test.groups) || proof.Principal.Name != "alice@"+strings.TrimPrefix(issuer, "http://") ||
			!strings.Contains(string(proof.Principal.Claims), `"sub":"alice"`) {
			t.Errorf("%v: %+v, %v", test.claims, proof, err)
		}
	}
}

// inProcess is a network in which the issuer's handler is called directly, for tests in fake time.
type inProcess struct{ *testIssuer }

// RoundTrip implements http.RoundTripper.
func (i inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	i.Config.Handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// TestJWT_UnknownKeys: after the issuer has replaced its key, tokens with the new key are accepted at once, or a moment later
// if forged tokens with unknown key IDs are arriving. However many forged tokens arrive, mcpx downloads the keys at most every
// two seconds, after the first few downloads.
func TestJWT_UnknownKeys(t *testing.T) {
	i := newTestIssuer(t, "")
	i.set(false, map[string]crypto.Signer{"k": ecKey()})
	synctest.Test(t, func(t *testing.T) {
		v := trusting(t, nil, i.URL)
		v.state.Load().issuers[i.URL].web.Transport = inProcess{i}
		try := func(kid string, key crypto.Signer) error {
			method := jwt.SigningMethod(jwt.SigningMethodES256)
			if key != ecKey() {
				method = jwt.SigningMethodRS256
			}
			_, err := v.Request(requestAt("/mcp", sign(t, method, key, i.URL, nil, map[string]any{"kid": kid})))
			return err
		}
		if err := try("k", ecKey()); err != nil {
			t.Fatal(err)
		}
		i.set(false, map[string]crypto.Signer{"new": rsaKey()})
		began := time.Now()
		if err := try("new", rsaKey()); err != nil || i.fetches.Load() != 2 || time.Since(began) > 0 {
			t.Errorf("after a rotation: %v, %d fetches, %v", err, i.fetches.Load(), time.Since(began))
		}
		if err := try("k", ecKey()); !errors.Is(err, ErrInvalid) {
			t.Errorf("the key before: %v", err)
		}
		// Eight hostile clients each send a new forged token 100 ms after the last one is answered.
		ctx, end := context.WithCancel(t.Context())
		var hostile sync.WaitGroup
		before := i.fetches.Load()
		for n := range 8 {
			hostile.Go(func() {
				for round := 0; ctx.Err() == nil; round++ {
					if err := try(fmt.Sprint("forged", n, round), otherKey()); !errors.Is(err, ErrInvalid) {
						t.Errorf("forged: %v", err)
					}
					select { // pauses after each answer
					case <-time.After(100 * time.Millisecond):
					case <-ctx.Done():
					}
				}
			})
		}
		time.Sleep(20 * time.Second)
		if n := i.fetches.Load() - before; n > unknownKeys+int32(20*time.Second/lookEvery)+1 {
			t.Errorf("%d fetches", n)
		}
		i.set(false, map[string]crypto.Signer{"new": rsaKey(), "newer": otherKey()})
		began = time.Now()
		if err := try("newer", otherKey()); err != nil || time.Since(began) > lookEvery {
			t.Errorf("after a rotation beside forged tokens: %v in %v", err, time.Since(began))
		}
		began = time.Now()
		if err := try("new", rsaKey()); err != nil || time.Since(began) > 0 {
			t.Errorf("a known key beside forged tokens: %v in %v", err, time.Since(began))
		}
		end()
		hostile.Wait()
	})
}

// TestJWT_IssuerDown: mcpx starts while the issuer is down. It reports that the issuer is unavailable, not that the
// token is invalid. It finds the issuer later, and after that verifies tokens with known keys even if the issuer is
// down.
func TestJWT_IssuerDown(t *testing.T) {
	i := newTestIssuer(t, "")
	keys := map[string]crypto.Signer{"k": ecKey()}
	i.set(true, keys)
	v := trusting(t, nil, i.URL)
	token := func(sub string) *http.Request {
		return requestAt("/mcp", sign(t, jwt.SigningMethodES256, ecKey(), i.URL, map[string]any{"sub": sub}, nil))
	}
	for range 5 {
		if _, err := v.Request(token("a")); !errors.Is(err, ErrUnavailable) {
			t.Errorf("down: %v", err)
		}
	}
	if n := i.asked.Load(); n != 3 { // one for each place where the metadata may be
		t.Errorf("%d requests to an issuer that is down", n)
	}
	i.set(false, keys)
	of := v.state.Load().issuers[i.URL]
	of.mu.Lock()
	of.again = time.Now()
	of.mu.Unlock()
	if _, err := v.Request(token("a")); err != nil {
		t.Errorf("up again: %v", err)
	}
	i.set(true, nil)
	if _, err := v.Request(token("b")); err != nil {
		t.Errorf("down later: %v", err)
	}
	v.SetOptions(&Options{Resource: v.Options().Resource, Issuers: v.Options().Issuers, Tokens: []conf.Token{tokenOf("x", "y")}})
	if _, err := v.Request(token("c")); err != nil {
		t.Errorf("after a reload: %v", err)
	}
}

// TestJWT_Issuers: an issuer can only make tokens for its own subjects, even if its keys have the same IDs as the keys of
// another issuer. If a download has no keys, as while the issuer restarts, the old keys stay valid.
func TestJWT_Issuers(t *testing.T) {
	a, b := newTestIssuer(t, ""), newTestIssuer(t, "")
	a.set(false, map[string]crypto.Signer{"k": ecKey()})
	b.set(false, map[string]crypto.Signer{"k": rsaKey(), "b": otherKey()})
	v := trusting(t, nil, a.URL, b.URL)
	who := func(method jwt.SigningMethod, key crypto.Signer, issuer, kid string) string {
		proof, err := v.Request(requestAt("/mcp", sign(t, method, key, issuer, nil, map[string]any{"kid": kid})))
		if err != nil {
			return ""
		}
		return proof.Principal.Key()
	}
	for _, test := range []struct {
		name, got, want string
	}{
		{"a", who(jwt.SigningMethodES256, ecKey(), a.URL, "k"), a.URL + " alice"},
		{"b", who(jwt.SigningMethodRS256, rsaKey(), b.URL, "k"), b.URL + " alice"},
		{"b as a", who(jwt.SigningMethodRS256, rsaKey(), a.URL, "k"), ""},
		{"b as a, by a key that a does not have", who(jwt.SigningMethodRS256, otherKey(), a.URL, "b"), ""},
	} {
		if test.got != test.want {
			t.Errorf("%s: %q, want %q", test.name, test.got, test.want)
		}
	}
	a.set(false, nil)
	if got := who(jwt.SigningMethodES256, ecKey(), a.URL, "unknown"); got != "" {
		t.Errorf("an unknown key: %q", got)
	}
	if got := who(jwt.SigningMethodES256, ecKey(), a.URL, "k"); got == "" || a.fetches.Load() < 3 {
		t.Errorf("after a set without keys: %q, %d fetches", got, a.fetches.Load())
	}
}

// TestJWT_Change: a request stays valid after a change of the options, as long as the options that matter for its
// token are the same.
func TestJWT_Change(t *testing.T) {
	i := newTestIssuer(t, "")
	i.set(false, map[string]crypto.Signer{"k": ecKey()})
	for name, test := range map[string]struct {
		change func(*Options)
		gone   bool
	}{
		"the same":         {func(o *Options) { o.Tokens = []conf.Token{tokenOf("more", "a")} }, false},
		"removed":          {func(o *Options) { o.Issuers = nil }, true},
		"other audiences":  {func(o *Options) { o.Issuers[0].Audiences = []string{"api"} }, true},
		"more scopes":      {func(o *Options) { o.Scopes = []string{"mcp"} }, true},
		"another resource": {func(o *Options) { o.Resource = &url.URL{Scheme: "https", Host: "b.example.com", Path: "/mcp"} }, true},
	} {
		v := trusting(t, nil, i.URL)
		proof, err := v.Request(requestAt("/mcp", sign(t, jwt.SigningMethodES256, ecKey(), i.URL, nil, nil)))
		if err != nil {
			t.Fatal(err)
		}
		o := *v.Options()
		o.Issuers = slices.Clone(o.Issuers)
		test.change(&o)
		v.SetOptions(&o)
		if gone := proof.Revoked.Err() != nil; gone != test.gone {
			t.Errorf("%s: revoked is %t", name, gone)
		}
	}
}

// TestJWT_Discovery: the metadata of an issuer is found at each of the places where it may be.
func TestJWT_Discovery(t *testing.T) {
	for _, form := range []string{"/.well-known/oauth-authorization-server/a/b", "/.well-known/openid-configuration/a/b", "/a/b/.well-known/openid-configuration"} {
		i := newTestIssuer(t, "/a/b")
		i.form = form
		i.set(false, map[string]crypto.Signer{"k": ecKey()})
		v := trusting(t, nil, i.URL+"/a/b")
		if _, err := v.Request(requestAt("/mcp", sign(t, jwt.SigningMethodES256, ecKey(), i.URL+"/a/b", nil, nil))); err != nil {
			t.Errorf("%s: %v", form, err)
		}
	}
	// Metadata that names another issuer is refused.
	i := newTestIssuer(t, "")
	i.form = "/.well-known/oauth-authorization-server/a"
	v := trusting(t, nil, i.URL+"/a")
	if _, err := v.Request(requestAt("/mcp", sign(t, jwt.SigningMethodES256, ecKey(), i.URL+"/a", nil, nil))); !errors.Is(err, ErrUnavailable) {
		t.Errorf("the metadata of another issuer: %v", err)
	}
}

// TestJWT_Kept: a token is verified once and then cached, but not accepted after it has expired. Proof.Until includes
// the leeway: a client that is disconnected before that would come back with the same, still accepted token again and
// again.
func TestJWT_Kept(t *testing.T) {
	i := newTestIssuer(t, "")
	i.set(false, map[string]crypto.Signer{"k": ecKey()})
	v := trusting(t, nil, i.URL)
	until := func(expires time.Time) time.Time {
		token := sign(t, jwt.SigningMethodES256, ecKey(), i.URL, map[string]any{"exp": expires.Unix()}, nil)
		for range 2 {
			proof, err := v.Request(requestAt("/mcp", token))
			if err != nil {
				t.Fatal(err)
			}
			if want := time.Unix(expires.Unix(), 0).Add(leeway); !proof.Until.Equal(want) {
				t.Errorf("until %v, want %v", proof.Until, want)
			}
		}
		state, digest := v.state.Load(), sha256.Sum256([]byte(token))
		kept := state.verified.Find(digest)
		until := kept.until
		kept.until = time.Now()
		if _, err := v.Request(requestAt("/mcp", token)); err != nil || state.verified.Find(digest) == kept {
			t.Errorf("a token is not verified again: %v", err)
		}
		return until
	}
	if left := time.Until(until(time.Now().Add(time.Hour))); left > keepVerified || left < keepVerified/2 {
		t.Errorf("kept for %v", left)
	}
	if left := time.Until(until(time.Now().Add(20 * time.Second))); left > 20*time.Second {
		t.Errorf("kept for %v", left)
	}
}

// TestResource checks the resource identifier for each path. If a public URL is configured, the Host of the request
// does not matter.
func TestResource(t *testing.T) {
	public := &Options{Resource: &url.URL{Scheme: "https", Host: "a.example", Path: "/x/mcp"}}
	for _, test := range []struct {
		o                *Options
		host, path, want string
	}{
		{public, "localhost", "/mcp", "https://a.example/x/mcp"},
		{public, "a.example", "/mcp/servers/a b", "https://a.example/x/mcp/servers/a%20b"},
		{public, "a.example", "/sse", "https://a.example/x/sse"},
		{public, "a.example", "/mcp/tools/messages", "https://a.example/x/mcp/tools/sse"},
		{public, "a.example", "/mcpx", "https://a.example/x/mcpx"},
		{public, "a.example", "/", "https://a.example/x/mcp"},
		{&Options{}, "LocalHost:8080", "/mcp", "http://localhost:8080/mcp"},
		{&Options{}, "127.0.0.1:8080", "/mcp/tools", "http://127.0.0.1:8080/mcp/tools"},
	} {
		if got := test.o.ResourceAt(&http.Request{Host: test.host}, test.path).String(); got != test.want {
			t.Errorf("%s%s: %s, want %s", test.host, test.path, got, test.want)
		}
	}
	for in, want := range map[string]string{
		"HTTPS://A.Example:443/Mcp/#frag": "https://a.example/Mcp",
		"https://a.example/":              "https://a.example",
		"http://[::1]:80/mcp":             "http://[::1]/mcp",
		"http://a.example:443/mcp":        "http://a.example:443/mcp",
		"api://Some-Id/":                  "api://Some-Id/",
		"Some-Client":                     "Some-Client",
	} {
		if got := canonical(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// FuzzRequest: no header causes a panic. No header yields a principal, unless it contains the configured token or the issuer's
// token.
func FuzzRequest(f *testing.F) {
	i := newTestIssuer(f, "")
	i.set(false, map[string]crypto.Signer{"k": ecKey()})
	v := trusting(f, func(o *Options) { o.Tokens = []conf.Token{tokenOf("ci", "mcpx_ci")} }, i.URL)
	good := sign(f, jwt.SigningMethodES256, ecKey(), i.URL, nil, nil)
	f.Add("Bearer mcpx_ci", "")
	f.Add("Bearer "+good, "")
	f.Add("Bearer "+sign(f, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, i.URL, nil, nil), "x")
	f.Add("Bearer a.b.c", "Bearer")
	f.Fuzz(func(t *testing.T, one, two string) {
		headers := []string{one}
		if two != "" {
			headers = append(headers, two)
		}
		r := requestWith(headers...)
		r.URL, r.Host = &url.URL{Path: "/mcp"}, "mcp.example.com"
		proof, err := v.Request(r)
		_, token, _ := strings.Cut(one, " ")
		given := two == "" && (strings.TrimLeft(token, " ") == "mcpx_ci" || strings.TrimLeft(token, " ") == good)
		if (err == nil) != (proof != nil) || proof != nil && !given {
			t.Errorf("%q: %+v, %v", headers, proof, err)
		}
	})
}

// TestJWT_OddKeys: if an issuer also has keys that mcpx cannot read, or keys for encryption (as Keycloak does), mcpx still uses its other
// keys. A token signed with a key for encryption is refused. mcpx logs the keys that it cannot read once, although it downloads them
// again; it does not log keys for encryption.
func TestJWT_OddKeys(t *testing.T) {
	i := newTestIssuer(t, "")
	i.set(false, map[string]crypto.Signer{"k": ecKey()})
	encryption := otherKey().Public().(*rsa.PublicKey)
	i.odd = []json.RawMessage{
		json.RawMessage(`{"kty":"RSA","kid":"no-e","n":"AQAB"}`),
		json.RawMessage(`{"kty":"EC","kid":"nowhere","crv":"P-256","x":"AQAB","y":"AQAB"}`),
		json.RawMessage(`{"kty":"EC","kid":"bitcoin","crv":"secp256k1","x":"AQAB","y":"AQAB"}`),
		json.RawMessage(`{"kty":"AKP","kid":"quantum","alg":"ML-DSA-44","pub":"AQAB"}`),
		json.RawMessage(`{"kty":5,"kid":"number"}`),
		json.RawMessage(`"a string"`),
		json.RawMessage(`{"kty":"RSA","kid":"enc","use":"enc","alg":"RSA-OAEP","e":"AQAB","x5c":["!"],"n":"` + base64.RawURLEncoding.EncodeToString(encryption.N.Bytes()) + `"}`),
	}
	var log strings.Builder
	keys := NewKeys(conf.Issuer{URL: i.URL}, slog.New(slog.NewTextHandler(&log, nil)))
	defer keys.Close()
	parse := func(method jwt.SigningMethod, key crypto.Signer, kid string) error {
		signed := sign(t, method, key, i.URL, nil, map[string]any{"kid": kid})
		_, err := keys.Parse(t.Context(), signed, jwt.MapClaims{})
		return err
	}
	if err := parse(jwt.SigningMethodES256, ecKey(), "k"); err != nil {
		t.Errorf("a good key beside odd ones: %v", err)
	}
	for _, kid := range []string{"enc", "unknown"} {
		if parse(jwt.SigningMethodRS256, otherKey(), kid) == nil {
			t.Errorf("a token with the key %s is accepted", kid)
		}
	}
	said := log.String()
	if strings.Count(said, "level=WARN") != 1 || i.fetches.Load() < 2 {
		t.Errorf("%d downloads: %s", i.fetches.Load(), said)
	}
	for _, kid := range []string{"no-e: ", "nowhere: ", "bitcoin: ", "quantum: ", "number: ", "(no kid): "} {
		if !strings.Contains(said, kid) {
			t.Errorf("the log does not name %s: %s", kid, said)
		}
	}
	if strings.Contains(said, "enc: ") {
		t.Errorf("the log names a key that can be read: %s", said)
	}
}
