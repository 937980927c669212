package transport

import (
	"os"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(m.Run())
}

// patience bounds how long a test waits for something. Only a failing test waits this long.
const patience = 2 * time.Minute
