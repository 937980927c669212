package mcptest

import "testing"

// OneGoroutine skips a test under the race detector. It is for long computations in a single goroutine, which cannot have
// races and would take five to ten times as long.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("one goroutine has no races")
	}
}
