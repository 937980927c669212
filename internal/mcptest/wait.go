package mcptest

import (
	"testing"
	"time"
)

// WaitFor polls cond until it is true, for states that come by themselves. It
// fails the test, naming what was waited for, when the limit passes first.
func WaitFor(t testing.TB, what string, limit time.Duration, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for !cond() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("waiting for %s: still not so after %v", what, limit)
		}
	}
}
