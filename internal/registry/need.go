package registry

import (
	"context"

	"mcpx/internal/catalog"
)

// Prefer says that somebody is about to wait for a server: it starts before others. It
// wakes none that is idle.
func (r *Registry) Prefer(name string) {
	r.mu.Lock()
	r.preferred = name
	e := r.entries[name]
	r.mu.Unlock()
	if e != nil && e.upstream != nil {
		e.upstream.Prefer()
	}
}

// Ask says that a server is needed: one that is idle starts.
func (r *Registry) Ask(name string) {
	r.mu.Lock()
	e := r.entries[name]
	r.mu.Unlock()
	if e != nil && e.upstream != nil {
		e.upstream.Ask()
		r.publish()
	}
}

// WaitInstalled waits until no command that installs is at its first start, or until
// ctx ends.
func (r *Registry) WaitInstalled(ctx context.Context) {
	r.waitFor(ctx, func(s *catalog.Server) bool {
		status, ok := r.Status(s.Name)
		return ok && status.Installing
	})
}
