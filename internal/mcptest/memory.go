package mcptest

import "testing"

// mostHelperMemory is how many bytes a helper with the limit of 256 MiB may have at most, whenever the guards get the processor: the kernel
// refuses more than that limit and a slack of 16 MiB beyond what the helper had at its start, which is less than 100 MB.
const mostHelperMemory = 385e6

// CheckHelperMemory fails a test whose helper process has had more than the most bytes that it may have, with a limit of 256 MiB. With the
// race detector, which uses memory too, it checks nothing.
func CheckHelperMemory(t testing.TB, had int64) {
	t.Helper()
	t.Logf("%d MB", had/1e6)
	if !Race && had > mostHelperMemory {
		t.Errorf("the helper had %d MB, want at most %d", had/1e6, int(mostHelperMemory/1e6))
	}
}
