package main

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"mcpx/internal/mcptest"
)

// TestReplicas_PerPrincipal: a server with a session for each principal (per_principal) has one process for all clients of a
// principal, whichever replica they use, in both eras. If the replica with this process ends, all clients of the principal share
// one process at another replica.
func TestReplicas_PerPrincipal(t *testing.T) {
	mcptest.Parallel(t)
	own := fake(t, mcptest.Spec{})
	own["session"] = "per_principal"
	tokens := map[string]any{}
	for _, who := range []string{"alice", "bob"} {
		sum := sha256.Sum256([]byte(who))
		tokens[who] = map[string]any{"sha256": hex.EncodeToString(sum[:])}
	}
	r := startReplicas(t, 2, map[string]server{"own": own}, map[string]any{"auth": map[string]any{"tokens": tokens}})
	agents := func(who string, at ...*hosted) (all []*client) {
		for _, d := range at {
			for _, era := range []string{legacy, modern} {
				peer := d.peer(t)
				peer.header.Set("Authorization", "Bearer "+who)
				c := &client{era: era, name: "agent in " + era, peer: peer}
				c.open(t)
				all = append(all, c)
			}
		}
		return all
	}
	processes := func(all []*client) map[string]bool {
		pids := map[string]bool{}
		for range 2 {
			for _, c := range all {
				pids[processOf(string(c.exec(t, "own", "pid", `{}`).Content[0]))] = true
			}
		}
		return pids
	}
	one, two := r.replicas[0].hosted, r.replicas[1].hosted
	hers, his := processes(agents("alice", one, two)), processes(agents("bob", two, one))
	if len(hers) != 1 || len(his) != 1 {
		t.Fatalf("alice has the processes %v, bob %v", hers, his)
	}
	for pid := range hers {
		if his[pid] {
			t.Error("alice and bob share a process")
		}
	}
	_ = one.cmd.Process.Kill()
	<-one.exited
	if left := processes(agents("alice", two)); len(left) != 1 {
		t.Errorf("after the end of a replica, alice has %v", left)
	}
}
