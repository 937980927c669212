package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// understandsEscapes turns escape sequences on. It fails on consoles before Windows 10.
func understandsEscapes(f *os.File) bool {
	var mode uint32
	console := windows.Handle(f.Fd())
	return windows.GetConsoleMode(console, &mode) == nil &&
		windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
