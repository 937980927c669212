package mcptest

import "testing"

// mostHelperMemory is how many bytes a helper with the limit of 256 MiB may have at most, however late the guards of package
// helper run on a busy machine. A helper has less than 100 MB at its start, and the kernel lets it have at most the limit and 16
// MiB more.
const mostHelperMemory = 385e6

// CheckHelperMemory fails the test if had is too large. had is the most memory, in bytes, that a helper with the limit of 256 MiB
// has had. With the race detector, which uses memory too, it checks nothing.
func CheckHelperMemory(t testing.TB, had int64) {
	t.Helper()
	t.Logf("%d MB", had/1e6)
	if !Race && had > mostHelperMemory {
		t.Errorf("the helper had %d MB, want at most %d", had/1e6, int(mostHelperMemory/1e6))
	}
}
