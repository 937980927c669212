package mcptest

import (
	"os"
	"testing"
)

// Full makes the tests leave nothing out. .ci/full sets MCPX_FULL for that.
var Full = os.Getenv("MCPX_FULL") != ""

// Part returns some of all cases, spread evenly, or all of them if Full. It is for tests that compute for many seconds
// and whose cases check much the same.
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

// Rounds is Part for random cases, which have no list.
func Rounds(t testing.TB, all, some int) int {
	t.Helper()
	return len(Part(t, make([]struct{}, all), some))
}

// OneGoroutine skips a test with the race detector: what one goroutine computes alone has no races, and takes five to
// ten times as long. .ci/run runs the packages that call OneGoroutine once more, without the race detector.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("one goroutine has no races")
	}
}
