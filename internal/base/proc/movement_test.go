//go:build linux || darwin

package proc

import (
	"fmt"
	"runtime"
	"testing"
)

// TestMovement: Movement changes when the child writes to stderr or starts a process in its session and, on Linux, also when it
// uses CPU time or starts a process in another session.
func TestMovement(t *testing.T) {
	p := start(t, "move", nil)
	for _, what := range []string{"nothing", "say", "burn", "fork", "fork-setsid"} {
		var before Movement
		same := 0
		eventually(t, slack, "the child rests", func() bool {
			now := p.Movement()
			if now != before {
				before, same = now, 0
			}
			same++
			return same > 20
		})
		fmt.Fprintln(p.Stdin(), what)
		for line := readLine(p.Stdout()); line != "done"; line = readLine(p.Stdout()) {
		}
		moved := func(now Movement) bool { return now.work != before.work }
		switch {
		case what == "nothing", what == "burn" && runtime.GOOS == "darwin", what == "fork-setsid" && runtime.GOOS == "darwin":
			continue
		case what == "say":
			moved = func(now Movement) bool { return now.stderr != before.stderr }
		}
		eventually(t, slack, "it moves: "+what, func() bool { return moved(p.Movement()) })
	}
	closeWithin(t, p, short, slack)
	if last := p.Movement(); p.Movement() != last {
		t.Error("what has ended moves")
	}
}
