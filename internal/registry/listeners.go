package registry

import (
	"encoding/json"
	"slices"
)

// unknownFunc receives a server's notification whose method mcpx does not know.
type unknownFunc func(server, method string, params json.RawMessage)

// OnChange registers f. Until the caller calls stop, f is called after each new snapshot, and when the lists of a principal have
// changed. f must not block.
func (r *Registry) OnChange(f func()) (stop func()) { return listen(r, &r.onChange, &f) }

// OnUnknown registers f for the notifications whose method mcpx does not know. Until the caller calls stop, f gets those of all
// shared sessions, except the sessions that meetOlder opens. Such notifications are for clients that see only one server. f must
// not block.
func (r *Registry) OnUnknown(f unknownFunc) (stop func()) { return listen(r, &r.onUnknown, &f) }

// listen adds f to the functions. It never changes the old slice, because the slice is read without the lock.
func listen[F any](r *Registry, functions *[]*F, f *F) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*functions = append(slices.Clone(*functions), f)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		*functions = slices.DeleteFunc(slices.Clone(*functions), func(other *F) bool { return other == f })
	}
}

// logged is for a log message of a server that several registries share: it sends the message to the client of this registry.
// But if program is not empty, the client gets the message only if program is the client's program (see
// [caller.Client.Program]).
func (r *Registry) logged(program string, params json.RawMessage) {
	owner := r.owner.Load()
	if owner != nil && owner.Notify != nil && (program == "" || program == owner.Program()) {
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
