package identity

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
)

func tokenOf(name, secret string) conf.Token {
	return conf.Token{Name: name, SHA256: sha256.Sum256([]byte(secret))}
}

func requestWith(authorization ...string) *http.Request {
	return &http.Request{Header: http.Header{"Authorization": authorization}}
}

func TestNewToken(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		token := NewToken()
		if _, err := caller.Bearer(requestWith("Bearer " + token).Header); err != nil || len(token) != len("mcpx_")+27 || seen[token] {
			t.Fatalf("%s: %v", token, err)
		}
		seen[token] = true
	}
}

// changing is a verifier whose options a test can change.
type changing struct {
	*Verifier
	state atomic.Pointer[State]
}

func verifierOf(o *Options) *changing {
	c := &changing{}
	c.Verifier = NewVerifier(c.state.Load)
	c.SetOptions(o)
	return c
}

// SetOptions changes the options in the same way as a reload of the config.
func (c *changing) SetOptions(o *Options) {
	before := c.state.Load()
	next := NewState(o, before)
	c.state.Store(next)
	before.Revoke(next)
}

// TestVerifier_Expires: a token is refused after it has expired. Another token of the same principal stays valid.
func TestVerifier_Expires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short := tokenOf("ci", "mcpx_short")
		short.Expires = time.Now().Add(time.Hour)
		v := verifierOf(&Options{Tokens: []conf.Token{short, tokenOf("ci", "mcpx_long")}})
		proof, err := v.Request(requestWith("Bearer mcpx_short"))
		if err != nil || !proof.Until.Equal(short.Expires) || proof.Principal.ID != "token ci" {
			t.Errorf("%+v, %v", proof, err)
		}
		time.Sleep(time.Hour)
		if _, err := v.Request(requestWith("Bearer mcpx_short")); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "expired") {
			t.Errorf("after its end: %v", err)
		}
		if _, err := v.Request(requestWith("Bearer mcpx_long")); err != nil {
			t.Error(err)
		}
	})
}

// TestVerifier_Header checks which principal a request with a given header has.
func TestVerifier_Header(t *testing.T) {
	v := verifierOf(&Options{Tokens: []conf.Token{tokenOf("ci", "mcpx_ci"), tokenOf("alice", "mcpx_alice")}})
	for _, test := range []struct {
		headers []string
		who     string
		err     error
	}{
		{[]string{"Bearer mcpx_ci"}, "token ci", nil},
		{[]string{"bearer  mcpx_alice"}, "token alice", nil},
		{nil, "", ErrNone},
		{[]string{"Basic bWNweF9jaQ=="}, "", ErrNone},
		{[]string{"mcpx_ci"}, "", ErrNone},
		{[]string{""}, "", ErrNone},
		{[]string{"Bearer mcpx_CI"}, "", ErrInvalid},
		{[]string{"Bearer x"}, "", ErrInvalid},
		{[]string{"Bearer"}, "", ErrMalformed},
		{[]string{"Bearer "}, "", ErrMalformed},
		{[]string{"Bearer mcpx_ci mcpx_ci"}, "", ErrMalformed},
		{[]string{"Bearer ${TOKEN}"}, "", ErrMalformed},
		{[]string{"Bearer mcpx_ci, Basic x"}, "", ErrMalformed},
		{[]string{"Bearer mcpx_ci\x00"}, "", ErrMalformed},
		{[]string{"Bearer mcpx_ci", "Bearer mcpx_ci"}, "", ErrMalformed},
		{[]string{"Bearer " + strings.Repeat("a", 16<<10+1)}, "", ErrMalformed},
	} {
		proof, err := v.Request(requestWith(test.headers...))
		if !errors.Is(err, test.err) || (err == nil) != (proof != nil) || proof != nil && proof.Principal.Key() != test.who {
			t.Errorf("%q: %+v, %v; want %q, %v", test.headers, proof, err, test.who, test.err)
		}
	}
}

// TestVerifier_Change: after a change of the options, credentials that are in both the old and the new options stay
// valid; all others are revoked.
func TestVerifier_Change(t *testing.T) {
	v := verifierOf(nil)
	if proof, err := v.Request(requestWith()); proof != nil || err != nil {
		t.Errorf("without options: %+v, %v", proof, err)
	}
	inGroup := tokenOf("group", "c")
	v.SetOptions(&Options{Tokens: []conf.Token{tokenOf("stays", "a"), tokenOf("goes", "b"), inGroup, tokenOf("renamed", "d")}})
	proofs := make(map[string]*Proof)
	for _, secret := range []string{"a", "b", "c", "d"} {
		proofs[secret], _ = v.Request(requestWith("Bearer " + secret))
	}
	inGroup.Groups = []string{"dev"}
	v.SetOptions(&Options{Tokens: []conf.Token{tokenOf("stays", "a"), inGroup, tokenOf("other", "d")}})
	for secret, gone := range map[string]bool{"a": false, "b": true, "c": true, "d": true} {
		if (proofs[secret].Revoked.Err() != nil) != gone {
			t.Errorf("%s: revoked is not %t", secret, gone)
		}
	}
	if _, err := v.Request(requestWith("Bearer b")); !errors.Is(err, ErrInvalid) {
		t.Errorf("a token that is gone: %v", err)
	}
	if proof, err := v.Request(requestWith("Bearer c")); err != nil || len(proof.Principal.Groups) != 1 {
		t.Errorf("new groups: %+v, %v", proof, err)
	}
	v.SetOptions(nil)
	if proofs["a"].Revoked.Err() == nil {
		t.Error("a proof outlives all options")
	}
}

// TestVerifier_Knows: Knows covers tokens, issuers, the local issuer and certificates.
func TestVerifier_Knows(t *testing.T) {
	v := verifierOf(nil)
	all := map[string]*caller.Principal{
		"anybody": nil, "token": {ID: "token a"}, "issuer": OfIssuer("https://i.example", "a b"),
		"longer issuer": OfIssuer("https://i.example/2", "a"), "front": OfIssuer("https://f.example", "a"), "certificate": {ID: "certificate DNS:a"},
	}
	for _, test := range []struct {
		o    *Options
		want string
	}{
		{nil, "anybody"},
		{&Options{}, ""},
		{&Options{Tokens: []conf.Token{tokenOf("a", "1"), tokenOf("b", "2")}}, "token"},
		{&Options{Tokens: []conf.Token{tokenOf("b", "1")}, Issuers: []conf.Issuer{{URL: "https://i.example"}}}, "issuer"},
		{&Options{Certificates: true, Issuers: []conf.Issuer{{URL: "https://i.example/2"}}}, "longer issuer, certificate"},
		{&Options{LocalIssuer: frontOf("https://f.example")}, "front"},
		{nil, "anybody"},
	} {
		v.SetOptions(test.o)
		for name, p := range all {
			if got, want := v.Knows(p), slices.Contains(strings.Split(test.want, ", "), name); got != want {
				t.Errorf("%+v knows %s: %t", test.o, name, got)
			}
		}
	}
}

// frontOf is a LocalIssuer whose login issuer has this URL.
type frontOf string

func (frontOf) Prove(string) *Proof   { return nil }
func (f frontOf) LoginIssuer() string { return string(f) }

// TestCertificate_Until: a certificate is not accepted after it has expired.
func TestCertificate_Until(t *testing.T) {
	v := verifierOf(&Options{Certificates: true})
	of := &x509.Certificate{DNSNames: []string{"a"}, NotAfter: time.Now().Add(time.Hour)}
	r := requestWith()
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{of}}}
	if proof, err := v.Request(r); err != nil || !proof.Until.Equal(of.NotAfter) {
		t.Errorf("%+v %v", proof, err)
	}
	of.NotAfter = time.Now().Add(-time.Hour)
	if _, err := v.Request(r); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}
