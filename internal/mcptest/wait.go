package mcptest

import (
	"testing"
	"time"
)

// WaitFor polls cond until it returns true. If that takes longer than limit, it fails the test and names what it was
// waiting for.
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
