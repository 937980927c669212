package executor

import (
	"mcpx/internal/policy"
	"mcpx/internal/request"
)

// Confirms returns the key of the config by which a person must confirm a request, empty if nobody must: the key of the
// strictest level. A method that mcpx does not know may do anything, and one that it knows changes nothing; nor do the
// tools of the server inside of mcpx.
func (e *Executor) Confirms(q *request.Request) (key string) {
	if q.Serve != nil || q.Tool == nil && request.Known(q.Method) {
		return ""
	}
	strictest, snap := policy.ConfirmNone, e.registry.Snapshot() // with the rules of one config
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
