package executor

import (
	"os"
	"testing"

	"mcpx/internal/base/helper"
	"mcpx/internal/base/proc"
	"mcpx/internal/jq"
	"mcpx/internal/mcptest"
	"mcpx/internal/programs"
)

func TestMain(m *testing.M) {
	helper.Roles{proc.ReaperRole: proc.ReaperMain, jq.Role: jq.Main, programs.Role: programs.Main}.Play()
	mcptest.Main()
	os.Exit(m.Run())
}
