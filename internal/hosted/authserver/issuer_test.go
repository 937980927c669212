package authserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// issuer is an OpenID issuer that logs in everyone without asking. Tests can make it lie. The tests of cmd/mcpx use a
// real issuer instead.
type issuer struct {
	url string
	key *ecdsa.PrivateKey
	// change changes the claims of the next ID tokens. sign replaces how they are signed. answer changes the
	// parameters with which the user is sent back. info is the response of the userinfo endpoint.
	change func(jwt.MapClaims)
	sign   func(jwt.MapClaims) string
	answer func(url.Values)
	info   map[string]any
	// lies changes the issuer's metadata.
	lies func(map[string]any)

	mu    sync.Mutex
	asked map[string]url.Values // parameters of the authorization requests, by code
	paths []string
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, asked: map[string]url.Values{}}
	web := httptest.NewServer(i)
	t.Cleanup(web.Close)
	i.url = web.URL
	return i
}

// ServeHTTP implements http.Handler.
func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.paths = append(i.paths, r.URL.Path)
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		metadata := map[string]any{
			"issuer": i.url, "authorization_endpoint": i.url + "/authorize", "token_endpoint": i.url + "/token",
			"jwks_uri": i.url + "/jwks", "userinfo_endpoint": i.url + "/userinfo", "authorization_response_iss_parameter_supported": true,
		}
		if i.lies != nil {
			i.lies(metadata)
		}
		_ = json.NewEncoder(w).Encode(metadata)
	case "/authorize":
		query := r.URL.Query()
		code := random()
		i.asked[code] = query
		back := url.Values{"code": {code}, "state": query["state"], "iss": {i.url}}
		if i.answer != nil {
			i.answer(back)
		}
		http.Redirect(w, r, query.Get("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther)
	case "/token":
		_ = r.ParseForm()
		asked, known := i.asked[r.PostForm.Get("code")]
		delete(i.asked, r.PostForm.Get("code"))
		id, secret, _ := r.BasicAuth()
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		if !known || id != "mcpx" || secret != "secret-of-the-issuer" || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || asked.Get("redirect_uri") != r.PostForm.Get("redirect_uri") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
			return
		}
		claims := jwt.MapClaims{
			"iss": i.url, "sub": "ann", "aud": "mcpx", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
			"nonce": asked.Get("nonce"), "email": "ann@example.com", "email_verified": true, "groups": []string{"staff"},
		}
		if i.change != nil {
			i.change(claims)
		}
		token := ""
		if i.sign != nil {
			token = i.sign(claims)
		} else {
			token = i.signed(claims, i.key)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "token of the issuer", "token_type": "Bearer", "id_token": token})
	case "/jwks":
		public, _ := i.key.PublicKey.Bytes()
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{
			"kty": "EC", "crv": "P-256", "kid": "one", "use": "sig", "alg": "ES256",
			"x": base64.RawURLEncoding.EncodeToString(public[1:33]), "y": base64.RawURLEncoding.EncodeToString(public[33:]),
		}}})
	case "/userinfo":
		if i.info == nil || r.Header.Get("Authorization") != "Bearer token of the issuer" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(i.info)
	default:
		http.NotFound(w, r)
	}
}

func (i *issuer) signed(claims jwt.MapClaims, key *ecdsa.PrivateKey) string {
	token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	token.Header["kid"] = "one"
	text, err := token.SignedString(key)
	if err != nil {
		panic(err)
	}
	return text
}
