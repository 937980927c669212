package authserver

import "mcpx/internal/caller"

// Event says that a login began or ended. In a cluster it happens at one replica only: the one that has begun or ended
// the login.
type Event struct {
	// Ended is false for a login that began.
	Ended bool
	// Login is the name of the login that administrators see.
	Login     string
	Principal *caller.Principal
	// Client is what the client calls itself; nobody has checked that.
	Client string
	// Why says why a login has ended, in a few words.
	Why string
}
