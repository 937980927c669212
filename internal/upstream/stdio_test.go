package upstream

import (
	"testing"

	"mcpx/internal/mcptest"
)

// What a process does beside messages is movement.
func TestMovement_Process(t *testing.T) {
	u := ready(t, stdio(t, mcptest.Spec{StderrFlood: -1}))
	u.mu.Lock()
	l := u.session.link.(*streamLink)
	u.mu.Unlock()
	before := l.own.movement()
	mcptest.WaitFor(t, "movement", patience, func() bool { return l.own.movement() != before })
	whole := l.movement()
	mcptest.WaitFor(t, "movement of the link", patience, func() bool { return l.movement() != whole })
}
