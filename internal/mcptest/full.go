package mcptest

import (
	"os"
	"testing"
)

// Full is whether tests run completely. .ci/full sets MCPX_FULL, which turns it on.
var Full = os.Getenv("MCPX_FULL") != ""

// Part returns count of the cases, spread evenly, or all cases if Full is true. It is for tests that compute for many seconds and
// whose cases are similar.
func Part[T any](t testing.TB, cases []T, count int) []T {
	t.Helper()
	if Full || count >= len(cases) {
		return cases
	}
	part := make([]T, count)
	for i := range part {
		part[i] = cases[(2*i+1)*len(cases)/(2*count)]
	}
	t.Logf("%d of %d cases; MCPX_FULL=1 runs all", count, len(cases))
	return part
}

// Rounds returns how many random cases a test runs: total if Full is true, otherwise at most count.
func Rounds(t testing.TB, total, count int) int {
	t.Helper()
	return len(Part(t, make([]struct{}, total), count))
}

// OneGoroutine skips a test under the race detector. A test that computes in one goroutine has no races, but takes
// five to ten times as long there. .ci/run runs the packages that call OneGoroutine a second time, without the race
// detector.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("one goroutine has no races")
	}
}
