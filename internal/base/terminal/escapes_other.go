//go:build !windows

package terminal

import "os"

// understandsEscapes returns true: outside Windows, terminals support ANSI escape sequences. [Of] itself checks for the exception,
// TERM=dumb.
func understandsEscapes(*os.File) bool { return true }
