package identity

import (
	"context"
	"crypto"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"mcpx/internal/base/conf"
	"mcpx/internal/mcptest"
)

// TestJWT_KeysDown: while the keys of an issuer cannot be read, which may last for days, tokens that arrive cause many attempts
// to read them. So a failed attempt must not leave a goroutine behind.
func TestJWT_KeysDown(t *testing.T) {
	i := newTestIssuer(t, "")
	i.keysDown = true
	v := trusting(t, nil, i.URL)
	of := v.state.Load().issuers[i.URL]
	downloads := func() int { // the goroutines that download keys regularly
		stacks := make([]byte, 4<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "created by github.com/MicahParks/jwkset.NewStorageFromHTTP")
	}
	before := downloads()
	for range 20 {
		of.mu.Lock()
		of.again = time.Time{} // as if tryAgain had passed
		of.mu.Unlock()
		if _, err := v.Request(requestAt("/mcp", sign(t, jwt.SigningMethodES256, ecKey(), i.URL, nil, nil))); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
	}
	mcptest.WaitFor(t, "the end of the downloads", 10*time.Second, func() bool { return downloads() <= before })
	if n := i.fetches.Load(); n != 20 {
		t.Errorf("%d attempts", n)
	}
}

// TestJWT_KeysMoved: an issuer moves its keys to another URL, and replaces them later. mcpx then finds the new keys there, and
// refuses the old ones.
func TestJWT_KeysMoved(t *testing.T) {
	i := newTestIssuer(t, "")
	i.set(false, map[string]crypto.Signer{"k": ecKey()})
	v := trusting(t, nil, i.URL)
	request := func(sub, kid string, key crypto.Signer, method jwt.SigningMethod) error {
		_, err := v.Request(requestAt("/mcp", sign(t, method, key, i.URL, map[string]any{"sub": sub}, map[string]any{"kid": kid})))
		return err
	}
	if err := request("a", "k", ecKey(), jwt.SigningMethodES256); err != nil {
		t.Fatal(err)
	}
	i.moved.Store(true)
	i.set(true, nil)
	if err := request("b", "unknown", otherKey(), jwt.SigningMethodRS256); err == nil {
		t.Error("a token with an unknown key is valid")
	}
	if err := request("c", "k", ecKey(), jwt.SigningMethodES256); err != nil {
		t.Errorf("while the issuer is down: %v", err)
	}
	i.set(false, map[string]crypto.Signer{"new": otherKey()})
	if err := request("d", "new", otherKey(), jwt.SigningMethodRS256); err != nil {
		t.Errorf("with a key at the new URL: %v", err)
	}
	if err := request("e", "k", ecKey(), jwt.SigningMethodES256); !errors.Is(err, ErrInvalid) {
		t.Errorf("with the old key: %v", err)
	}
}

// TestJWT_MetadataHangs: while mcpx looks whether an issuer has moved its keys, tokens with known keys do not wait for that.
func TestJWT_MetadataHangs(t *testing.T) {
	i := newTestIssuer(t, "")
	i.set(false, map[string]crypto.Signer{"k": ecKey()})
	v := trusting(t, nil, i.URL)
	request := func(ctx context.Context, sub, kid string) error {
		token := sign(t, jwt.SigningMethodES256, ecKey(), i.URL, map[string]any{"sub": sub}, map[string]any{"kid": kid})
		_, err := v.Request(requestAt("/mcp", token).WithContext(ctx))
		return err
	}
	if err := request(t.Context(), "a", "k"); err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	i.keysDown, i.hung = true, make(chan struct{}, 9)
	i.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	unknown := make(chan error)
	go func() { unknown <- request(ctx, "b", "unknown") }() // ends with ctx
	<-i.hung
	known := make(chan error, 1)
	go func() { known <- request(t.Context(), "c", "k") }() // ends with the answer
	select {
	case err := <-known:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("a token with a known key waits")
	}
	cancel()
	<-unknown
}

// TestJWT_Forwarded: a replica that has no keys of an issuer yet, and cannot get them, serves a request with a JWT that another replica
// has verified, without waiting. The request ends when the issuer leaves the config. For other credentials of the same request, the word
// of the other replica is no proof.
func TestJWT_Forwarded(t *testing.T) {
	i := newTestIssuer(t, "")
	i.set(true, nil)
	v := trusting(t, func(o *Options) { o.Tokens = []conf.Token{tokenOf("bob", "of-bob")} }, i.URL)
	until := time.Now().Add(time.Hour)
	token := sign(t, jwt.SigningMethodES256, ecKey(), i.URL, nil, nil)
	proof := v.Forwarded(requestAt("/mcp", token), OfIssuer(i.URL, "alice"), until)
	if proof == nil || proof.Principal.ID != i.URL+" alice" || !proof.Until.Equal(until) || i.asked.Load() != 0 {
		t.Fatalf("got %+v, after %d requests to the issuer", proof, i.asked.Load())
	}
	for name, got := range map[string]*Proof{
		"without a principal": v.Forwarded(requestAt("/mcp", token), nil, until),
		"of a static token":   v.Forwarded(requestAt("/mcp", token), OfToken(conf.Token{Name: "alice"}), until),
		"of somebody else":    v.Forwarded(requestAt("/mcp", "of-bob"), OfToken(conf.Token{Name: "alice"}), until),
		"no JWT":              v.Forwarded(requestAt("/mcp", "x"), OfIssuer(i.URL, "alice"), until),
		"of another issuer":   v.Forwarded(requestAt("/mcp", token), OfIssuer(i.URL+"/other", "alice"), until),
	} {
		if got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	o := *v.Options()
	o.Issuers = nil
	v.SetOptions(&o)
	if proof.Revoked.Err() == nil {
		t.Error("the request goes on without its issuer")
	}
}
