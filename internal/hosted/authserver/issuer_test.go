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
	// poor means that it gives no refresh tokens. silent means that renewing gives no ID token. fails, if not empty, is the error
	// with which it answers every request for tokens; "down" means 502. renewing is called during each renewal.
	poor, silent bool
	life         any // expires_in of tokens, if not nil
	fails        string
	renewing     func()

	mu    sync.Mutex
	asked map[string]url.Values // parameters of the authorization requests, by code
	paths []string
	// valid has the refresh tokens that were not used, and used has the others. If a token is used twice, all become invalid.
	valid, used map[string]bool
	renewals    int
	reused      bool
}

// with changes the issuer while it runs.
func (i *issuer) with(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

// refreshToken makes a refresh token. The caller holds mu, or nobody else knows the issuer.
func (i *issuer) refreshToken() string {
	token := random()
	i.valid[token] = true
	return token
}

// inProcess is a network with nothing but the issuer, for tests in fake time.
type inProcess struct{ to http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.to.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, asked: map[string]url.Values{}, valid: map[string]bool{}, used: map[string]bool{}}
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
		id, secret, _ := r.BasicAuth()
		refuse := func(status int, code string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":"` + code + `"}`))
		}
		var asked url.Values
		switch token := r.PostForm.Get("refresh_token"); {
		case i.fails == "down":
			http.Error(w, "down", http.StatusBadGateway)
			return
		case i.fails != "":
			refuse(http.StatusBadRequest, i.fails)
			return
		case id != "mcpx" || secret != "secret-of-the-issuer":
			refuse(http.StatusUnauthorized, "invalid_client")
			return
		case token != "":
			if i.renewing != nil {
				i.mu.Unlock()
				i.renewing()
				i.mu.Lock()
			}
			if i.used[token] {
				i.reused = true
				clear(i.valid)
			}
			if !i.valid[token] {
				refuse(http.StatusBadRequest, "invalid_grant")
				return
			}
			delete(i.valid, token)
			i.used[token] = true
			i.renewals++
		default:
			var known bool
			asked, known = i.asked[r.PostForm.Get("code")]
			delete(i.asked, r.PostForm.Get("code"))
			sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
			if !known || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || asked.Get("redirect_uri") != r.PostForm.Get("redirect_uri") {
				refuse(http.StatusBadRequest, "invalid_grant")
				return
			}
		}
		claims := jwt.MapClaims{
			"iss": i.url, "sub": "ann", "aud": "mcpx", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "sid": "session of ann",
			"email": "ann@example.com", "email_verified": true, "groups": []string{"staff"},
		}
		if asked != nil {
			claims["nonce"] = asked.Get("nonce")
		}
		if i.change != nil {
			i.change(claims)
		}
		answer := map[string]any{"access_token": "token of the issuer", "token_type": "Bearer", "expires_in": 1800}
		if i.life != nil {
			answer["expires_in"] = i.life
		}
		switch {
		case asked == nil && i.silent:
		case i.sign != nil:
			answer["id_token"] = i.sign(claims)
		default:
			answer["id_token"] = i.signed(claims, i.key)
		}
		if !i.poor {
			answer["refresh_token"] = i.refreshToken()
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
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
