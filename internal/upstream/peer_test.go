package upstream

import (
	"testing"

	"mcpx/internal/caller"
)

// TestPeer: two principals count as two clients even if they share one connection, as behind a proxy.
func TestPeer(t *testing.T) {
	alice, bob := &caller.Principal{ID: "a"}, &caller.Principal{ID: "b"}
	one := &caller.Client{ID: "1", Peer: "connection", Principal: alice}
	for other, same := range map[*caller.Client]bool{
		{ID: "2", Peer: "connection", Principal: alice}: true,
		{ID: "2", Peer: "connection", Principal: bob}:   false,
		{ID: "2", Peer: "connection"}:                   false,
		{ID: "2", Principal: alice}:                     false,
	} {
		if got := one.Program() == other.Program(); got != same {
			t.Errorf("%+v: %t", other, got)
		}
	}
}
