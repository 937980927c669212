package policy

import (
	"slices"

	"mcpx/internal/base/catalog"
)

// Scope is a part of the catalogue: some servers, and the tools that further rules leave
// of them. Nil is the whole catalogue. Safe for concurrent use.
type Scope struct {
	// Servers are the names of the servers; nil = all.
	Servers []string
	// Rules apply beside those of the configuration; nil = none.
	Rules *Rules
	// Confirm applies beside that of the configuration.
	Confirm Confirm

	visible Catalogues
}

// Has reports whether a server is in the part.
func (p *Scope) Has(server string) bool {
	return p == nil || p.Servers == nil || slices.Contains(p.Servers, server)
}

// Confirms is the Confirm of the part.
func (p *Scope) Confirms() Confirm {
	if p == nil {
		return ConfirmNone
	}
	return p.Confirm
}

// Of is the part of a catalogue. The same catalogue has the same part.
func (p *Scope) Of(snap *catalog.Snapshot) *catalog.Snapshot {
	if p == nil {
		return snap
	}
	parted := snap.Derived(p, func() *catalog.Snapshot {
		servers := catalog.NewSnapshot(slices.DeleteFunc(slices.Clone(snap.Servers), func(s catalog.Server) bool { return !p.Has(s.Name) }))
		if servers.Empty = snap.Empty; p.Rules != nil {
			servers.Rules = p.Rules
		}
		return servers
	})
	return p.visible.of(parted, true) // what apps alone may see is hidden before, or not
}
