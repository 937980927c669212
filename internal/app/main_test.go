package app

import (
	"os"
	"testing"

	"mcpx/internal/base/proc"
	"mcpx/internal/mcptest"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	proc.ReaperMain()
	os.Exit(m.Run())
}
