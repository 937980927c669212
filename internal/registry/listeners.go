package registry

import (
	"encoding/json"
	"slices"
)

// unknownFunc receives a server's notification whose method mcpx does not know.
type unknownFunc func(server, method string, params json.RawMessage)

// OnChange registers f to be called after each new snapshot, until the caller calls stop. f must not block.
func (r *Registry) OnChange(f func()) (stop func()) { return listen(r, &r.onChange, &f) }

// OnUnknown registers f for notifications with a method that mcpx does not know, from all shared sessions, until the caller
// calls stop. They are for clients that see only one server. f must not block.
func (r *Registry) OnUnknown(f unknownFunc) (stop func()) { return listen(r, &r.onUnknown, &f) }

// listen adds f to all. It never changes the old slice, because that is read without the lock.
func listen[F any](r *Registry, all *[]*F, f *F) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*all = append(slices.Clone(*all), f)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		*all = slices.DeleteFunc(slices.Clone(*all), func(other *F) bool { return other == f })
	}
}

// logged passes the log message of a server that several registries share on to the client of this one. only, if not empty, is the
// only program that may get it.
func (r *Registry) logged(only string, params json.RawMessage) {
	owner := r.owner.Load()
	if owner != nil && owner.Notify != nil && (only == "" || only == owner.Program()) {
		owner.Notify("notifications/message", params)
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
