package app

import (
	"os"
	"runtime"
	"testing"

	"mcpx/internal/mcptest"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(run(m))
}

// run runs the tests with a temporary folder for the files that mcpx keeps of its user, such as keys.
func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "mcpx-app")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	for _, variable := range []string{"XDG_CONFIG_HOME", "AppData"} {
		if err := os.Setenv(variable, folder); err != nil {
			panic(err)
		}
	}
	if runtime.GOOS == "darwin" {
		os.Setenv("HOME", folder)
	}
	return m.Run()
}
