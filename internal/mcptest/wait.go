package mcptest

import (
	"testing"
	"time"
)

// WaitFor polls cond until it returns true, more rarely the longer it waits: conditions that ask a server would take a processor
// otherwise. If it takes longer than limit, WaitFor fails the test and names what it was waiting for.
func WaitFor(t testing.TB, what string, limit time.Duration, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for pause := 2 * time.Millisecond; !cond(); pause = min(pause*5/4, 50*time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-deadline.C:
			t.Fatalf("waiting for %s: still not so after %v", what, limit)
		}
	}
}
