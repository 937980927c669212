package registry

import (
	"mcpx/internal/catalog"
	"mcpx/internal/upstream"
)

// Apply makes the registry one of these servers: those whose definition is
// unchanged go on undisturbed, with their open calls; the others are stopped
// and started. visible replaces the filter. It waits for the stopped ones. After
// Close it does nothing.
func (r *Registry) Apply(servers []Server, visible func(server string, tool *catalog.Tool) bool) {
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return
	}
	next := make(map[string]*entry, len(servers))
	var begin, end []*upstream.Upstream
	for _, server := range servers {
		name := server.Spec.Name
		if old := r.entries[name]; old != nil && old.server.Definition == server.Definition {
			old.last = catalog.Server{} // the filter may have changed
			next[name] = old
			continue
		}
		e := r.newEntry(server)
		next[name] = e
		if e.upstream != nil {
			begin = append(begin, e.upstream)
		}
	}
	for name, old := range r.entries {
		if next[name] == old {
			continue
		}
		if old.upstream != nil {
			end = append(end, old.upstream)
		}
		for key, c := range r.clients {
			if key.server == name {
				end = append(end, c.upstream)
				delete(r.clients, key)
			}
		}
	}
	r.entries, r.visible = next, visible
	for _, u := range begin {
		u.Start()
	}
	r.mu.Unlock()
	r.publish()
	closeAll(end, 0)
}
