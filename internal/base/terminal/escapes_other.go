//go:build !windows

package terminal

import "os"

// understandsEscapes reports whether a terminal supports ANSI escape sequences.
func understandsEscapes(*os.File) bool { return true }
