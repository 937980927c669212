package upstream

import (
	"testing"

	"mcpx/internal/hosted/identity"
)

// TestPeer: two principals are two, also over one connection, as a proxy may have it.
func TestPeer(t *testing.T) {
	alice, bob := &identity.Principal{ID: "a"}, &identity.Principal{ID: "b"}
	one := &Client{ID: "1", Peer: "connection", Principal: alice}
	for other, same := range map[*Client]bool{
		{ID: "2", Peer: "connection", Principal: alice}: true,
		{ID: "2", Peer: "connection", Principal: bob}:   false,
		{ID: "2", Peer: "connection"}:                   false,
		{ID: "2", Principal: alice}:                     false,
	} {
		if got := one.peer() == other.peer(); got != same {
			t.Errorf("%+v: %t", other, got)
		}
	}
}
