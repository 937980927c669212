package mcptest

import "testing"

// OneGoroutine skips a test with the race detector: one that is about much that a goroutine
// computes alone has no races to find, and takes five to ten times as long.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("one goroutine has no races")
	}
}
