package mcptest

import (
	"os"
	"testing"
)

// Full is whether tests run completely. .ci/full sets MCPX_FULL, which turns it on.
var Full = os.Getenv("MCPX_FULL") != ""

// Part returns some of all cases, spread evenly, or all cases if Full is true. It is for tests that compute for many
// seconds and whose cases are similar.
func Part[T any](t testing.TB, all []T, some int) []T {
	t.Helper()
	if Full || some >= len(all) {
		return all
	}
	part := make([]T, some)
	for i := range part {
		part[i] = all[(2*i+1)*len(all)/(2*some)]
	}
	t.Logf("%d of %d cases; MCPX_FULL=1 runs all", some, len(all))
	return part
}

// Rounds is like Part, for tests with random cases: it returns how many of them to run.
func Rounds(t testing.TB, all, some int) int {
	t.Helper()
	return len(Part(t, make([]struct{}, all), some))
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
