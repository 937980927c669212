package app

import (
	"runtime/debug"
	"strings"
)

// Version is the version of the module, or devel for a build from a checkout.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return strings.TrimPrefix(info.Main.Version, "v")
	}
	return "0.1.0-devel"
}
