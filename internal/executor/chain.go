package executor

import (
	"mcpx/internal/request"
)

// Chain returns the middleware that every message to a server passes, in this order, for [registry.Registry.Use]. Without it
// messages are neither recorded, refused nor confirmed. To add a middleware, write it next to those of package request and give it
// a line here. admit writes the audit trail and limit enforces the limits of callers; both may be nil.
func (e *Executor) Chain(admit, limit request.Middleware) []request.Middleware {
	return []request.Middleware{
		request.Recorded(e.journal),   // describes the message in its event
		request.Rights(e.Sees),        // the caller may see the server and call the tool
		request.Confirmed(e.Confirms), // the user agrees, where the config demands it
		admit,                         // the call's beginning is in the audit trail
		request.Timed,                 // measures the server, for log, audit and metrics
		limit,                         // the caller is within its limits
		request.Pinned(e.Sees, e.registry.Refresh), // the tool is still the one that was approved and shown
		e.registry.Credentials,                     // the credentials that the server needs from each caller are there
	}
}
