package transport

import (
	"os"
	"testing"
	"time"

	"mcpx/internal/base/proc"
	"mcpx/internal/mcptest"
)

func TestMain(m *testing.M) {
	proc.ReaperMain()
	mcptest.Main()
	os.Exit(m.Run())
}

// patience bounds what a test waits for; it passes only where a test fails.
const patience = 2 * time.Minute
