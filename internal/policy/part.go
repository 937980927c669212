package policy

import (
	"slices"
	"sync"

	"mcpx/internal/catalog"
)

// Part is a part of the catalogue: some servers, and the tools that further rules leave
// of them. Nil is the whole catalogue. Safe for concurrent use.
type Part struct {
	// Servers are the names of the servers; nil = all.
	Servers []string
	// Rules apply beside those of the configuration; nil = none.
	Rules *Rules
	// Confirm applies beside that of the configuration.
	Confirm Confirm

	mu      sync.Mutex
	from    *catalog.Snapshot // of the last call
	servers *catalog.Snapshot // the servers of from, with Rules
	visible Catalogues
}

// Has reports whether a server is in the part.
func (p *Part) Has(server string) bool {
	return p == nil || p.Servers == nil || slices.Contains(p.Servers, server)
}

// Confirms is the Confirm of the part.
func (p *Part) Confirms() Confirm {
	if p == nil {
		return ConfirmNone
	}
	return p.Confirm
}

// Of is the part of a catalogue. The same catalogue has the same part.
func (p *Part) Of(snap *catalog.Snapshot) *catalog.Snapshot {
	if p == nil {
		return snap
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if snap != p.from {
		servers := slices.DeleteFunc(slices.Clone(snap.Servers), func(s catalog.Server) bool { return !p.Has(s.Name) })
		p.from, p.servers = snap, catalog.NewSnapshot(servers)
		if p.Rules != nil {
			p.servers.Rules = p.Rules
		}
	}
	return p.visible.Of(p.servers)
}
