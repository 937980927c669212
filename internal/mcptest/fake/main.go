// Command fake is the fake server of package mcptest as a program of its own, without the race detector. Such a process starts
// in a tenth of the time of a test binary with the race detector, and the tests start a thousand of them.
package main

import (
	"fmt"
	"os"

	"mcpx/internal/mcptest"
)

func main() {
	mcptest.Main()
	fmt.Fprintln(os.Stderr, "fake: only tests can start this program (see mcptest.Spec.Stdio)")
	os.Exit(2)
}
