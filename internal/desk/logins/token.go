package logins

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"mcpx/internal/base/netguard"
	"mcpx/internal/base/sanitize"
)

// client is the OAuth client that mcpx uses with an authorization server.
type client struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
	// Method is the token endpoint authentication method (RFC 7591). If it is empty, the authorization server's metadata decides.
	Method string `json:"method,omitempty"`
	// Redirect is the registered redirect URI, if mcpx registered the client dynamically.
	Redirect string `json:"redirect,omitempty"`
	// Expires is when the secret expires; zero means never.
	Expires time.Time `json:"expires,omitzero"`
}

// ends reports whether the secret of the client has expired or expires within an hour.
func (c *client) ends() bool { return !c.Expires.IsZero() && time.Until(c.Expires) < time.Hour }

// endpoint is the token endpoint of an authorization server, with the parameters that all requests to it share.
type endpoint struct {
	Issuer   string   `json:"issuer"`
	Resource string   `json:"resource"`
	Audience string   `json:"audience,omitempty"` // some authorization servers use it instead of the resource
	Token    string   `json:"token_url"`
	Revoke   string   `json:"revoke_url,omitempty"`
	Methods  []string `json:"methods,omitempty"` // the client authentication methods that the authorization server supports
	Client   client   `json:"client"`
}

// style returns how x/oauth2 must send the client's secret. It never returns AuthStyleAutoDetect, with which x/oauth2 would try
// both ways. It would then send a refresh token twice, although such a token works only once.
func (e endpoint) style() oauth2.AuthStyle {
	const basic, post = "client_secret_basic", "client_secret_post"
	method := e.Client.Method
	if method == "" && slices.Contains(e.Methods, post) && !slices.Contains(e.Methods, basic) {
		method = post
	}
	if e.Client.Secret == "" || method == post {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader // client_secret_basic is the default (RFC 8414)
}

// ask requests a token. params must contain the grant_type. ask also renews tokens. It does not use the refresh function of
// x/oauth2, because that function cannot send the parameter resource, which each request must include (RFC 8707).
func (e endpoint) ask(ctx context.Context, web *http.Client, scopes []string, params url.Values) (*oauth2.Token, error) {
	params.Set("resource", e.Resource)
	if e.Audience != "" {
		params.Set("audience", e.Audience)
	}
	config := clientcredentials.Config{
		ClientID: e.Client.ID, ClientSecret: e.Client.Secret, TokenURL: e.Token, Scopes: scopes,
		EndpointParams: params, AuthStyle: e.style(),
	}
	token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, netguard.Tokens(web)))
	switch {
	case err != nil:
		return nil, tokenError(e.Issuer, err, e.secrets(params))
	case !strings.EqualFold(token.Type(), "Bearer"):
		return nil, fmt.Errorf("the authorization server issues tokens of type %q, but mcpx only supports Bearer", sanitize.Line(token.Type(), 40))
	}
	return token, nil
}

// refusedError is an OAuth error response of the authorization server.
type refusedError struct {
	code string // from RFC 6749 section 5.2
	text string
}

func (e *refusedError) Error() string { return e.text }

// minSecret is the shortest value, in bytes, that is removed from error texts. Shorter values occur in most texts by chance.
const minSecret = 4

// secrets returns arguments for strings.NewReplacer: each secret in a token request, followed by the text that replaces it.
func (e endpoint) secrets(params url.Values) (all []string) {
	for _, value := range []string{
		e.Client.Secret, params.Get("code"), params.Get("code_verifier"),
		params.Get("refresh_token"), params.Get("subject_token"), params.Get("client_assertion"),
	} {
		if len(value) >= minSecret {
			all = append(all, value, "[secret]")
		}
	}
	return all
}

// tokenError returns an error that says what went wrong at a token endpoint, without secrets. The authorization server may repeat
// secrets of the request in its error; replacements has the arguments for a strings.NewReplacer that removes them. They are removed
// before the text is shortened, because a secret that is cut in half would not be found.
func tokenError(issuer string, err error, replacements []string) error {
	answer, ok := errors.AsType[*oauth2.RetrieveError](err)
	who := "the authorization server " + sanitize.Line(issuer, 200)
	switch {
	case !ok:
		text := explain(err).Error()
		if strings.Contains(text, "cannot parse") { // this error of x/oauth2 quotes the response, so it is not shown
			text = "its response is not a token"
		}
		return fmt.Errorf("%s: %s", who, text)
	case answer.ErrorCode == "" || answer.Response != nil && answer.Response.StatusCode >= 500:
		return fmt.Errorf("%s answered %s", who, answer.Response.Status)
	}
	replace := strings.NewReplacer(replacements...).Replace
	text := who + " says " + sanitize.Line(replace(answer.ErrorCode), 60)
	if answer.ErrorDescription != "" {
		text += ": " + sanitize.Line(replace(answer.ErrorDescription), 200)
	}
	return &refusedError{answer.ErrorCode, text}
}

// assertionLife is the validity of the JWTs with which mcpx proves who it is (private_key_jwt). Each request has a new JWT.
const assertionLife = 5 * time.Minute

// assertion returns the parameters with which mcpx authenticates by private_key_jwt (RFC 7523): a JWT that is signed with the client's
// private key.
func assertion(issuer, clientID, key string) (url.Values, error) {
	method, private, err := signingKey(key)
	if err != nil {
		return nil, fmt.Errorf("oauth.key: %w", err)
	}
	now := time.Now()
	signed, err := jwt.NewWithClaims(method, jwt.RegisteredClaims{
		Issuer: clientID, Subject: clientID, Audience: jwt.ClaimStrings{issuer}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(assertionLife)),
	}).SignedString(private)
	if err != nil {
		return nil, fmt.Errorf("oauth.key: %w", err)
	}
	return url.Values{
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		"client_assertion":      {signed},
	}, nil
}

// signingKey parses a private key, given as PEM or as the path of a PEM file, and finds the matching algorithm. Its errors
// never quote the key.
func signingKey(text string) (jwt.SigningMethod, crypto.PrivateKey, error) {
	data := []byte(text)
	if !strings.Contains(text, "-----BEGIN") {
		var err error
		if data, err = os.ReadFile(text); err != nil {
			return nil, nil, errors.New("is neither a PEM text nor the path of a file that can be read")
		}
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, nil, errors.New("is not a PEM text")
	}
	var key any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, nil, errors.New("has no private key that can be read (PKCS #8, PKCS #1 or SEC 1, not encrypted)")
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return jwt.SigningMethodRS256, k, nil
	case ed25519.PrivateKey:
		return jwt.SigningMethodEdDSA, k, nil
	case *ecdsa.PrivateKey:
		for _, method := range []*jwt.SigningMethodECDSA{jwt.SigningMethodES256, jwt.SigningMethodES384, jwt.SigningMethodES512} {
			if method.CurveBits == k.Curve.Params().BitSize {
				return method, k, nil
			}
		}
	}
	return nil, nil, errors.New("is of a kind that cannot sign JWTs")
}
