package upstream

import (
	"time"

	"mcpx/internal/base/catalog"
)

// Status is what is known about an upstream at one moment. Its slices are
// never changed.
type Status struct {
	State      catalog.State
	Reason     string
	RetryAfter time.Time // when the next attempt is due; zero if none is planned
	Transport  string
	Agreement  // of the last session
	Lists
	// Installing: a command that installs is at its first start, or waits for it.
	Installing bool
	// Took is how long the last successful attempt took.
	Took time.Duration
	// Restarts counts the sessions that were lost. CrashLoop says that they are lost
	// again and again.
	Restarts  int
	CrashLoop bool
}

// Agreement is what a handshake has found.
type Agreement struct {
	Protocol string // the revision
	Modern   bool
	// Unprobed: the session is legacy as the client that owns it is. That says nothing of
	// whether the server speaks the modern era too.
	Unprobed bool
	// Stateful: the server may keep something from one request of the session to the next.
	Stateful bool
	// Title, Version and Instructions are the server's own.
	Title, Version, Instructions string
}

// Lists are what a server has listed, in the last session that listed it.
type Lists struct {
	Tools []catalog.Tool
	// Known is set once a tools/list was read.
	Known bool
	// Faults are what is wrong with single tools.
	Faults []string
	// Offers are the kinds of lists beside the tools, Items what is in them. Listed is set once
	// they were read; ListTried also after an attempt in vain.
	Offers            catalog.Offers
	Items             *catalog.Items
	Listed, ListTried bool
}

// list takes over a catalogue. One that says the same as the last leaves the
// old slice in place, by which others see that nothing changed.
func (l *Lists) list(tools []catalog.Tool, faults []string) {
	if !l.Known || !catalog.EqualTools(l.Tools, tools) {
		l.Tools = tools
	}
	l.Known, l.Faults = true, faults
}
