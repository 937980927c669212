package executor

import (
	"mcpx/internal/base/conf"
	"mcpx/internal/policy"
	"mcpx/internal/request"
)

// Confirms returns the config key that requires the user to confirm a request, or "" if none does. If several keys do, it
// returns the key with the strictest [conf.Confirm]. A request with a method that mcpx does not know may have any effect, so
// it is treated like a call. Two kinds of requests change nothing themselves and need no confirmation: known methods other than
// tools/call, and calls of those tools of the built-in server that only read, or that run a program.
func (e *Executor) Confirms(q *request.Request) (key string) {
	if q.Program || q.Serve != nil && q.Tool.Hints.IsReadOnly() || q.Tool == nil && request.Known(q.Method) {
		return ""
	}
	strictest, snap := conf.ConfirmNone, e.registry.Snapshot() // one snapshot, so that all rules are from one config
	for _, by := range [...]struct {
		level conf.Confirm
		key   string
	}{
		{policy.ConfirmOf(snap, q.To.Name), "confirm in the config of mcpx"},
		{q.Scope.Confirms(), "confirm of the group in the config of mcpx"},
		{permissionsOf(snap, q.Client).Confirms(q.To, q.Tool), "confirm of auth.rights in the config of mcpx"},
	} {
		if by.level > strictest && policy.Asks(by.level, q.Tool) {
			strictest, key = by.level, by.key
		}
	}
	return key
}
