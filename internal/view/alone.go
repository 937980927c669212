package view

import (
	"encoding/json"

	"mcpx/internal/upstream"
)

// A view that shows one server alone passes on what mcpx does not know, both ways.

// Alone implements [View].
func (b *base) Alone() bool { return b.current().Naming.Alone }

// Tell implements [View].
func (b *base) Tell(client *upstream.Client, method string, params json.RawMessage) {
	if snap := b.catalogue(client); b.Alone() && len(snap.Servers) == 1 && !snap.Servers[0].Limited {
		b.registry.Tell(snap.Servers[0].Name, client, method, params)
	}
}

// OnUnknown implements [View].
func (b *base) OnUnknown(tell func(method string, params json.RawMessage)) {
	if !b.Alone() {
		return
	}
	stop := b.registry.OnUnknown(func(server, method string, params json.RawMessage) {
		if !b.part().Has(server) {
			return
		}
		tell(method, params)
		for _, w := range b.audience() {
			if s, ok := b.catalogue(w.client).Server(server); ok && !s.Limited {
				w.unknown(method, params)
			}
		}
	})
	unfollow := b.unfollow
	b.unfollow = func() {
		stop()
		unfollow()
	}
}
