package identity

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
)

const agentKey = "6a369b7f1bcf4d3e8d123ece38bb9627"

// The tokens of the older system for agentKey, made by openssl enc -aes-256-ecb.
const (
	encryptedToken = "csMw6ZUQReFhJKINiLaecXx8ha0Le2eLAVUQ+Y/OAlga+x4M8jbKXxqAVJesmPNL" // {"agentId": "9a11…bdc8"}
	singleModule   = "xTr7w9G0EcAbf8IorLoBiE5b9K+CwZtl2DlcrI/9XpY="                     // {"agentId":"single_module"}
	shortKeyToken  = "0ihG94UrsNCKNgTjueKbdQeBugNLVIn6zXXAv4p4wRo="                     // {"agentId":"single_module"}, key "short"
)

func signed(t *testing.T, method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
	t.Helper()
	token, err := jwt.NewWithClaims(method, claims).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestAgent checks which tokens of agents are accepted, and which agents they belong to.
func TestAgent(t *testing.T) {
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	good, err := NewAgentToken(agentKey, "robot.7", until)
	if err != nil {
		t.Fatal(err)
	}
	old, _ := NewAgentToken("an older key of the same system, long", "robot.7", until)
	past, _ := NewAgentToken(agentKey, "robot.7", time.Now().Add(-time.Second))
	strange, _ := NewAgentToken("a key that this system does not have", "robot.7", until)
	blocks, _ := base64.StdEncoding.DecodeString(encryptedToken)
	with := func(claims jwt.MapClaims) string { return signed(t, jwt.SigningMethodHS256, []byte(agentKey), claims) }
	for name, test := range map[string]struct{ token, signed, encrypted string }{
		"signed":                   {good, "robot.7", "robot.7"},
		"with the second key":      {old, "robot.7", "robot.7"},
		"expired":                  {past, "", ""},
		"another key":              {strange, "", ""},
		"no end":                   {with(jwt.MapClaims{"agentId": "a"}), "", ""},
		"no agent":                 {with(jwt.MapClaims{"exp": until.Unix()}), "", ""},
		"a number":                 {with(jwt.MapClaims{"agentId": 7, "exp": until.Unix()}), "", ""},
		"a bad name":               {with(jwt.MapClaims{"agentId": "a@issuer", "exp": until.Unix()}), "", ""},
		"another algorithm":        {signed(t, jwt.SigningMethodHS512, []byte(agentKey), jwt.MapClaims{"agentId": "a", "exp": until.Unix()}), "", ""},
		"no algorithm":             {signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, jwt.MapClaims{"agentId": "a", "exp": until.Unix()}), "", ""},
		"another payload":          {good[:strings.IndexByte(good, '.')] + "." + strings.Split(past, ".")[1] + "." + strings.Split(good, ".")[2], "", ""},
		"encrypted":                {encryptedToken, "", "9a1158154dfa42caddbd0694a4e9bdc8"},
		"single module":            {singleModule, "", "single_module"},
		"a + that was not escaped": {strings.ReplaceAll(encryptedToken, "+", " "), "", "9a1158154dfa42caddbd0694a4e9bdc8"},
		"encrypted, another key":   {shortKeyToken, "", ""},
		"a block less":             {base64.StdEncoding.EncodeToString(blocks[:32]), "", ""},
		"a block twice":            {base64.StdEncoding.EncodeToString(append(blocks[:16:16], blocks...)), "", ""},
		"half a block":             {base64.StdEncoding.EncodeToString(blocks[:40]), "", ""},
		"nothing":                  {"", "", ""},
		"too long":                 {strings.Repeat("A", 8<<10), "", ""},
		"text":                     {"hello", "", ""},
	} {
		for mode, want := range map[bool]string{false: test.signed, true: test.encrypted} {
			v := verifierOf(&Options{Agents: &Agents{Keys: []string{agentKey, "an older key of the same system, long"}, Encrypted: mode}})
			proof, err := v.Agent(test.token)
			switch {
			case want == "" && (!errors.Is(err, ErrInvalid) && !errors.Is(err, ErrNone) || proof != nil):
				t.Errorf("%s, encrypted %t: %+v, %v", name, mode, proof, err)
			case want == "" && test.token != "" && strings.Contains(err.Error(), test.token):
				t.Errorf("%s: the error has the token: %v", name, err)
			case want != "" && (err != nil || proof.Principal.ID != "agent "+want || proof.Principal.Name != "agent:"+want):
				t.Errorf("%s, encrypted %t: %+v, %v; want %s", name, mode, proof, err, want)
			case want == "robot.7" && !proof.Until.Equal(until):
				t.Errorf("%s: until %s, want %s", name, proof.Until, until)
			}
		}
	}
	if _, err := openEncrypted(shortKeyToken, "short"); err != nil {
		t.Errorf("a key that is filled with zeros: %v", err)
	}
	if _, err := NewAgentToken(agentKey, "a b", until); err == nil {
		t.Error("a token of an agent with a space in its name")
	}
}

// TestAgent_Change: if the keys for agents' tokens change, the requests that these tokens have opened end. Agents' tokens are not
// accepted for other requests. A certificate cannot have the name of an agent.
func TestAgent_Change(t *testing.T) {
	v := verifierOf(nil)
	token, _ := NewAgentToken(agentKey, "a", time.Now().Add(time.Hour))
	if _, err := v.Agent(token); !errors.Is(err, ErrInvalid) {
		t.Errorf("without auth: %v", err)
	}
	options := func(a *Agents) *Options { return &Options{Tokens: []conf.Token{tokenOf("t", "x")}, Agents: a} }
	v.SetOptions(options(nil))
	if _, err := v.Agent(token); !errors.Is(err, ErrInvalid) {
		t.Errorf("without dial.compat: %v", err)
	}
	v.SetOptions(options(&Agents{Keys: []string{agentKey}}))
	proof, err := v.Agent(token)
	if err != nil || !v.Knows(proof.Principal) {
		t.Fatal(proof, err)
	}
	if _, err := v.Request(requestWith("Bearer " + token)); !errors.Is(err, ErrInvalid) {
		t.Errorf("as a token of the endpoint: %v", err)
	}
	v.SetOptions(options(&Agents{Keys: []string{agentKey}}))
	if proof.Revoked.Err() != nil {
		t.Error("ended by a reload that changed nothing")
	}
	v.SetOptions(options(&Agents{Keys: []string{"another key", agentKey}, Encrypted: true}))
	if proof.Revoked.Err() != nil {
		t.Error("ended by a key beside its own")
	}
	v.SetOptions(options(&Agents{Keys: []string{"another key"}}))
	if proof.Revoked.Err() == nil {
		t.Error("not ended with its key")
	}
	v.SetOptions(options(nil))
	if v.Knows(proof.Principal) || v.Knows(&caller.Principal{ID: "agent b"}) {
		t.Error("agents are known without dial.compat")
	}
	if p, err := ofCertificate(&x509.Certificate{URIs: []*url.URL{{Scheme: "agent", Opaque: "a"}}, NotAfter: time.Now().Add(time.Hour)}, time.Now()); err == nil {
		t.Errorf("a certificate of %s", p.Name)
	}
}
