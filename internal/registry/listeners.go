package registry

import (
	"encoding/json"
	"slices"
)

// OnChange registers f to be called after each new snapshot, from the publishing
// goroutine, until the caller calls stop. f must not block.
func (r *Registry) OnChange(f func()) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onChange = append(slices.Clone(r.onChange), &f) // publish reads the old list
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.onChange = slices.DeleteFunc(slices.Clone(r.onChange), func(other *func()) bool { return other == &f })
	}
}

// A notification that mcpx does not know goes through it, where a client sees one server
// alone.

// OnUnknown registers f to get the notifications that mcpx does not know, of all shared
// sessions, until the caller calls stop. f must not block.
func (r *Registry) OnUnknown(f func(server, method string, params json.RawMessage)) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onUnknown = append(slices.Clone(r.onUnknown), &f)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		others := slices.Clone(r.onUnknown)
		r.onUnknown = slices.DeleteFunc(others, func(other *func(server, method string, params json.RawMessage)) bool {
			return other == &f
		})
	}
}

func (r *Registry) unknown(server, method string, params json.RawMessage) {
	r.mu.Lock()
	all := r.onUnknown
	r.mu.Unlock()
	for _, f := range all {
		(*f)(server, method, params)
	}
}
