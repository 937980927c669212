package executor

import (
	"mcpx/internal/request"
)

// Chain returns the middleware for [registry.Registry.Use]. Every message to a server passes through it, in this order. A registry
// without it does not record messages, check the rights of the caller, or let the user confirm calls. To add a middleware, write it
// next to the others in package request and add it to this list. admit writes the audit trail and limit enforces the limits of
// callers; both may be nil.
func (e *Executor) Chain(admit, limit request.Middleware) []request.Middleware {
	return []request.Middleware{
		request.Recorded(e.journal),   // fills in the event that describes the message to the observers
		request.Rights(e.Sees),        // checks that the caller may see the server and call the tool
		e.registry.LoggedIn,           // asks the caller to log in at a server that needs the login of each principal
		request.Confirmed(e.Confirms), // asks the user to confirm the call, if the config requires it
		admit,                         // writes the beginning of the call to the audit trail
		request.Timed,                 // measures the time the server takes, for log, audit and metrics
		limit,                         // checks that the caller is within its limits
		request.Pinned(e.Sees, e.registry.Refresh), // checks that the tool is still the one that was approved and shown
		e.registry.Credentials,                     // takes the credentials that the server needs from the caller's message
	}
}
