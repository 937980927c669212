package upstream

import (
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/request"
)

// Status is a snapshot of what is known about an upstream. Its slices are never changed.
type Status struct {
	State      catalog.State
	Reason     string
	RetryAfter time.Time // when the next attempt is due; zero if none is planned

	Agreement // with the last session
	Lists
	// Installing means that a command that may install its program first is at its first start, or waits for it.
	Installing bool
	// starts means that the command installs or starts, or waits for its turn.
	starts bool
	// Took is how long the last successful attempt took.
	Took time.Duration
	// Restarts counts the sessions that were lost, CrashLoop means that they are lost again and again.
	Restarts  int
	CrashLoop bool
}

// Unavailable is the error for requests while this status lasts.
func (s *Status) Unavailable() *request.UnavailableError {
	e := &request.UnavailableError{State: s.State, Reason: s.Reason}
	if !s.RetryAfter.IsZero() {
		e.RetryAfter = max(0, time.Until(s.RetryAfter))
	}
	return e
}

// Agreement is the outcome of a handshake.
type Agreement struct {
	Protocol string // the revision
	Modern   bool
	// Unprobed means that the session is legacy because its owner, a client, is, or because the server was too slow to answer
	// the probe. Whether the server speaks the modern era too is then unknown.
	Unprobed bool
	// Stateful means that the server may keep state between the requests of the session.
	Stateful bool
	// Title, Version and Instructions are the server's own.
	Title, Version, Instructions string
}

// Lists are what a server listed in the last session that read its lists.
type Lists struct {
	Tools []catalog.Tool
	// Known is set once a tools/list was read.
	Known bool
	// Faults describe the tools that were dropped as invalid.
	Faults []string
	// Offers says which lists the server has beside tools, Items are their contents. Listed is set once they were read,
	// ListTried also after a failed attempt.
	Offers            catalog.Offers
	Items             *catalog.Items
	Listed, ListTried bool
}

// list replaces the tools. An equal catalogue leaves the old slice in place, so that others can compare the slices to see
// that nothing has changed.
func (l *Lists) list(tools []catalog.Tool, faults []string) {
	if !l.Known || !catalog.EqualTools(l.Tools, tools) {
		l.Tools = tools
	}
	l.Known, l.Faults = true, faults
}
