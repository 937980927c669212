package policy

import (
	"slices"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
)

// Scope is a part of the catalogue: some servers, whose tools further rules may hide. Nil is the whole catalogue. Safe for
// concurrent use.
type Scope struct {
	// Servers are the names of the servers; nil means all servers.
	Servers []string
	// Rules apply in addition to the rules of the config; nil means no further rules.
	Rules *Rules
	// Confirm applies in addition to the Confirm of the config.
	Confirm conf.Confirm

	visible Catalogues
}

// Has reports whether the scope includes a server.
func (p *Scope) Has(server string) bool {
	return p == nil || p.Servers == nil || slices.Contains(p.Servers, server)
}

// Confirms returns p.Confirm, or ConfirmNone if p is nil.
func (p *Scope) Confirms() conf.Confirm {
	if p == nil {
		return conf.ConfirmNone
	}
	return p.Confirm
}

// Disables reports whether a pattern in p.Rules.Disabled matches a tool.
func (p *Scope) Disables(server, tool string) bool { return p != nil && p.Rules.Disables(server, tool) }

// Of returns the part of a catalogue that is in the scope. For the same catalogue it always returns the same part.
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
	return p.visible.of(parted, true) // true keeps tools for apps, which snap contains only if they may be visible
}
