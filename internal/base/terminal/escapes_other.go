//go:build !windows

package terminal

import "os"

// understandsEscapes returns true: outside Windows, terminals support ANSI escape sequences. For the exception TERM=dumb, [Of]
// checks itself.
func understandsEscapes(*os.File) bool { return true }
