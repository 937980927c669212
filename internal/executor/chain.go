package executor

import (
	"mcpx/internal/request"
)

// Chain is what every message to a server passes, in this order, for [registry.Registry.Use]. Without it nothing is recorded,
// refused or confirmed. A middleware may refuse a message, change it or act on its answer; none sends one to another server.
// To add one, write it beside those of package request and give it its line. admit has the audit trail and limit the limits of
// callers; nil = there is none.
func (e *Executor) Chain(admit, limit request.Middleware) []request.Middleware {
	return []request.Middleware{
		request.Recorded(e.journal),   // says in the event what the message is for
		request.Rights(e.Sees),        // the caller may see the server, and call the tool
		request.Confirmed(e.Confirms), // a person has agreed, where the config asks for that
		admit,                         // the audit trail has the beginning
		request.Timed,                 // how long the server takes, for log, audit and metrics
		limit,                         // the caller is within its limits
		request.Pinned(e.Sees, e.registry.Refresh), // the tool is still the one that was approved and shown
		e.registry.Credentials,                     // what the server wants of each caller is there
	}
}
