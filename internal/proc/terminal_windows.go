package proc

import (
	"os"

	"golang.org/x/sys/windows"
)

// IsTerminal reports whether a person sits at f.
func IsTerminal(f *os.File) bool {
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil
}
