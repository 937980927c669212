package policy

import (
	"slices"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
)

// Scope is the part of the catalogue that a view shows: the servers in Servers, without those tools that Rules hide. Nil is the
// whole catalogue. Several goroutines may use a Scope at the same time.
type Scope struct {
	// Servers are the names of the servers; nil means all servers.
	Servers []string
	// Rules hide further tools, in addition to those that the rules of the config hide. Nil hides none.
	Rules *Rules
	// Confirm says which calls the user must confirm in addition to those of the config.
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

// Disables reports whether a pattern in p.Rules.Disabled matches a tool. It returns false if p is nil.
func (p *Scope) Disables(server, tool string) bool { return p != nil && p.Rules.Disables(server, tool) }

// Of returns the part of a catalogue that is in the scope. If it is called again with the same catalogue, it returns the same
// pointer.
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
	return p.visible.of(parted, true) // true keeps tools for apps; snap has them only if they may be visible
}
