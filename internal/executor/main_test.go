package executor

import (
	"os"
	"testing"

	"mcpx/internal/mcptest"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(m.Run())
}
