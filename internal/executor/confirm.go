package executor

import (
	"mcpx/internal/policy"
	"mcpx/internal/request"
)

// Confirms returns the config key that demands the user's confirmation of a request, empty if none does; of several, the one
// with the strictest level. A method that mcpx does not know may do anything; the methods that it knows, and the built-in
// server's tools, change nothing.
func (e *Executor) Confirms(q *request.Request) (key string) {
	if q.Serve != nil || q.Tool == nil && request.Known(q.Method) {
		return ""
	}
	strictest, snap := policy.ConfirmNone, e.registry.Snapshot() // one snapshot: its rules are from one config
	for _, by := range [...]struct {
		level policy.Confirm
		key   string
	}{
		{policy.ConfirmOf(snap, q.To.Name), "confirm in the config of mcpx"},
		{q.Scope.Confirms(), "confirm of the group in the config of mcpx"},
		{grant(snap, q.Client).Confirms(q.To, q.Tool), "confirm of auth.rights in the config of mcpx"},
	} {
		if by.level > strictest && policy.Asks(by.level, q.Tool) {
			strictest, key = by.level, by.key
		}
	}
	return key
}
