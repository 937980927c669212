package upstream

import (
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/request"
)

// Status is a snapshot of what is known about an upstream. Its slices must not be changed.
type Status struct {
	State      catalog.State
	Reason     string
	RetryAfter time.Time // when the next attempt is due, if State is unavailable, or degraded without a session; else zero

	Agreement // negotiated in the last session
	Lists
	// Installing means that the command may be installing its program for the first time: it has never started successfully (see
	// [Spec.StartedBefore]), and the first attempt of this upstream has not ended. The attempt runs, waits for its turn, or has not
	// begun.
	Installing bool
	// isStarting means that the command installs or starts, or waits for its turn to install.
	isStarting bool
	// Took is how long the last successful attempt to connect took, without the wait for other installs or for a server to
	// dial in.
	Took time.Duration
	// Restarts is how many sessions were lost. CrashLoop means that sessions are lost again and again.
	Restarts  int
	CrashLoop bool
}

// Unavailable returns the error for requests while the upstream has this status.
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
	// Unprobed, in a legacy session, means that the server may speak the modern era too: the owner is a legacy client, the
	// server was too slow to answer the probe, or it has dialled in and accepted both eras.
	Unprobed bool
	// Stateful means that the server may keep state between the requests of the session.
	Stateful bool
	// Title, Version and Instructions are what the server said about itself; with [Spec.NoInstructions] only Version is set.
	Title, Version, Instructions string
}

// Era returns the era of the server for [Spec.Era]: empty if nothing was agreed, or if the server may speak the modern era too.
func (a *Agreement) Era() string {
	switch {
	case a.Modern:
		return EraModern
	case a.Protocol != "" && !a.Unprobed:
		return EraLegacy
	}
	return ""
}

// Lists are the lists that mcpx last read from a server.
type Lists struct {
	Tools []catalog.Tool
	// Known means that a session has read tools/list, or that the tools come from [Catalogue.Tools].
	Known bool
	// Faults describe the tools that were dropped because they are invalid or occur twice, and why the list is incomplete.
	Faults []string
	// Offers says which lists the server has besides tools; Items are the contents of these lists. Listed is set once at least a
	// part of each of these lists was read, or if the server has none of them. ListTried is also set after a failed attempt to read
	// them. Once set, both stay set.
	Offers            catalog.Offers
	Items             *catalog.Items
	Listed, ListTried bool
}

// list replaces the tools. If the tools are equal, the old slice stays, so that others can notice a change by
// comparing slices.
func (l *Lists) list(tools []catalog.Tool, faults []string) {
	if !l.Known || !catalog.EqualTools(l.Tools, tools) {
		l.Tools = tools
	}
	l.Known, l.Faults = true, faults
}
