package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"mcpx/internal/front"
)

type versionCommand struct{}

// Run prints what this binary is made of.
func (cmd *versionCommand) Run(s streams) error {
	fmt.Fprintf(s.out, "mcpx %s\ncommit %s\n%s %s/%s\nprotocols %s\n",
		version(), commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.Join(front.Protocols(), " "))
	return nil
}

// version is the module's version, or devel where it was built from a checkout.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return strings.TrimPrefix(info.Main.Version, "v")
	}
	return "0.1.0-devel"
}

func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, modified := "unknown", ""
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			revision = setting.Value
		case "vcs.modified":
			if setting.Value == "true" {
				modified = " (modified)"
			}
		}
	}
	return revision + modified
}
