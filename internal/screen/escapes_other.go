//go:build !windows

package screen

import "os"

// understandsEscapes reports whether a terminal knows escape sequences.
func understandsEscapes(*os.File) bool { return true }
