package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// understandsEscapes makes a console interpret ANSI escape sequences, and reports whether that worked. It does not
// work before Windows 10.
func understandsEscapes(f *os.File) bool {
	var mode uint32
	console := windows.Handle(f.Fd())
	return windows.GetConsoleMode(console, &mode) == nil &&
		windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
