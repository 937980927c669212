//go:build unix

package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// IsTerminal reports whether a person sits at f. A character device such as
// /dev/null is none.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}
