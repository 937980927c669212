package authserver

import "mcpx/internal/caller"

// Event says that a login began or ended. In a cluster only the replica that began or ended the login reports it.
type Event struct {
	// Ended is false for a login that began.
	Ended bool
	// Login is the ID of the login that administrators see ([Login.ID]).
	Login     string
	Principal *caller.Principal
	// Client is the name that the client has given itself, which mcpx cannot verify. If the login is for mcpx's own pages, Client
	// is a fixed text.
	Client string
	// Why says why a login has ended, in a few words.
	Why string
}
