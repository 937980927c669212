package app

import (
	"mcpx/internal/request"
)

// chain is what every message to a server passes, in this order. A middleware may refuse a message, change it or act on its
// answer; none sends one to another server. To add one, write it beside those of package request and give it its line.
func (a *App) chain() []request.Middleware {
	return []request.Middleware{
		request.Recorded(&a.journal),           // says in the event what the message is for
		request.Rights(a.Executor.Sees),        // the caller may see the server, and call the tool
		request.Confirmed(a.Executor.Confirms), // a person has agreed, where the config asks for that
		a.admit,                                // the audit trail has the beginning
		request.Timed,                          // how long the server takes, for log, audit and metrics
		a.limits.Limit,                         // the caller is within its limits
		request.Pinned(a.Executor.Sees, a.Registry.Refresh), // the tool is still the one that was approved and shown
		a.Registry.Credentials,                              // what the server wants of each caller is there
	}
}
