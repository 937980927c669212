package authserver

import (
	"testing"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/state"
	"mcpx/internal/mcptest"
)

// TestKeys: the first key in the list encrypts. As long as an old key is in the list, tokens and logins that were encrypted with
// it are valid. A login that was renewed under the new key stays valid after the old key was removed.
func TestKeys(t *testing.T) {
	mcptest.Parallel(t)
	store := storeIn(t, t.TempDir())
	first := still(t, store, 'o')
	with := func(letters string) *Server {
		var secrets []*state.Secret
		for _, letter := range []byte(letters) {
			secrets = append(secrets, secretOf(letter))
		}
		s, err := New(Options{
			Resource: "https://mcp.example.com/mcp", Secrets: secrets, Audit: unrecorded, Log: quiet,
			AuthServer: conf.AuthServer{Issuer: "https://login.example.com", ClientID: "mcpx", ClientSecret: "secret-of-the-issuer"},
		}, Parts{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		s.oidc.web.Transport = first.oidc.web.Transport
		t.Cleanup(s.Close)
		return s
	}
	login := func(s *Server) *grant {
		g, err := s.redeem(t.Context(), s.codeOf(t, "c"))
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	renewed, idle := login(first), login(first)
	during := with("no")
	token := func(s *Server, g *grant) string {
		return s.seals.access.close(access{g.Number, g.Who, deadline(accessTime)})
	}
	old, fresh := token(first, idle), token(during, idle)
	next, err := during.renew(t.Context(), refreshOf("c", renewed, first))
	if err != nil {
		t.Fatalf("a login of the old key under both: %v", err)
	}
	after := with("n")
	for name, is := range map[string]bool{
		"old before": first.Prove(old) != nil, "old during": during.Prove(old) != nil, "old after": after.Prove(old) == nil,
		"new before": first.Prove(fresh) == nil, "new during": during.Prove(fresh) != nil, "new after": after.Prove(fresh) != nil,
		"a stranger's": during.Prove(token(with("x"), idle)) == nil,
	} {
		if !is {
			t.Error(name)
		}
	}
	if _, err := after.renew(t.Context(), refreshOf("c", next, during)); err != nil {
		t.Errorf("a login that was renewed under the new key: %v", err)
	}
	if _, err := after.renew(t.Context(), refreshOf("c", idle, during)); err == nil {
		t.Error("a login goes on that was sealed with the old key alone")
	}
	turned := with("on") // a replica that already accepts the new key, but still encrypts with the old one
	two := login(turned)
	if done, err := during.end(t.Context(), two.Number, "test"); !done || err != nil || turned.Prove(token(turned, two)) != nil {
		t.Errorf("replicas with the same keys in another order do not know each other's logins: %v", err)
	}
}
