package authserver

import (
	"testing"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/state"
	"mcpx/internal/mcptest"
)

// TestKeys: what was sealed with an old key is opened while the old key is in the list, and not afterwards; the first key
// seals. Codes and tokens that were used under the old key stay used, and a login that ended stays ended, at every step of the
// replacement and for a replica that still has only the old key.
func TestKeys(t *testing.T) {
	mcptest.Parallel(t)
	grants := GrantsIn(t.TempDir(), quiet)
	with := func(letters string) *Server {
		var secrets []*state.Secret
		for _, letter := range []byte(letters) {
			secrets = append(secrets, secretOf(letter))
		}
		s, err := New(Options{
			Resource: "https://mcp.example.com/mcp", AuthServer: conf.AuthServer{Issuer: "https://login.example.com"}, Secrets: secrets, Log: quiet,
		}, grants)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	before, during, after := with("o"), with("no"), with("n")
	until := time.Now().Add(time.Hour)
	token := func(s *Server, grant string) string {
		return s.seals.access.close(access{grant, "client", user{Subject: "u"}, until.Unix()})
	}
	use := func(s *Server, grant string, number int) bool {
		fresh, err := s.grants.Redeem(t.Context(), grant, number, until)
		return err == nil && fresh
	}
	old, fresh := token(before, "goes on"), token(during, "goes on")
	for name, is := range map[string]bool{
		"old before": before.Prove(old) != nil, "old during": during.Prove(old) != nil, "old after": after.Prove(old) == nil,
		"new before": before.Prove(fresh) == nil, "new during": during.Prove(fresh) != nil, "new after": after.Prove(fresh) != nil,
		"a stranger's": during.Prove(token(with("x"), "goes on")) == nil,
	} {
		if !is {
			t.Error(name)
		}
	}
	if !use(before, "stolen", 0) || !use(during, "stolen", 1) {
		t.Fatal("not fresh")
	}
	proof := during.Prove(token(during, "stolen"))
	if proof == nil || use(during, "stolen", 0) {
		t.Fatal("a code was used twice")
	}
	if proof.Revoked.Err() == nil {
		t.Error("the requests of a revoked login go on")
	}
	for name, s := range map[string]*Server{"before": before, "during": during, "after": after} {
		if use(s, "stolen", 2) || s.Prove(token(s, "stolen")) != nil {
			t.Errorf("%s: a revoked login goes on", name)
		}
	}
	turned := with("on") // another replica, at the first step of the replacement
	if turned.Prove(fresh) == nil || turned.Prove(token(turned, "stolen")) != nil || during.Prove(token(turned, "goes on")) == nil {
		t.Error("replicas with the same keys in another order do not know each other's logins")
	}
	if !use(turned, "both", 0) || !use(during, "both", 1) || use(turned, "both", 1) || use(during, "both", 2) {
		t.Error("replicas with the same keys in another order redeem a number twice, or not once")
	}
	if err := before.grants.End(t.Context(), "ended", until); err != nil || during.Prove(old) == nil || during.Prove(token(during, "ended")) != nil {
		t.Errorf("ended at a replica with the old key alone: %v", err)
	}
}
