package executor

import (
	"os"
	"testing"

	"mcpx/internal/base/proc"
	"mcpx/internal/jq"
	"mcpx/internal/mcptest"
)

func TestMain(m *testing.M) {
	jq.Main()
	proc.ReaperMain()
	mcptest.Main()
	os.Exit(m.Run())
}
