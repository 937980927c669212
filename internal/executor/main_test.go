package executor

import (
	"os"
	"testing"

	"mcpx/internal/jq"
	"mcpx/internal/mcptest"
	"mcpx/internal/proc"
)

func TestMain(m *testing.M) {
	jq.Main()
	proc.ReaperMain()
	mcptest.Main()
	os.Exit(m.Run())
}
