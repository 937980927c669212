package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"mcpx/internal/app"
	"mcpx/internal/front"
)

type versionCommand struct{}

func (cmd *versionCommand) Help() string { return examples("mcpx version", "mcpx --version") }

func (cmd *versionCommand) Run(s streams) error {
	fmt.Fprintln(s.out, versionText())
	return nil
}

// versionText lists the version of this binary, its commit, and the protocol versions.
func versionText() string {
	return fmt.Sprintf("mcpx %s\ncommit %s\n%s %s/%s\nprotocols %s",
		app.Version(), commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.Join(front.Protocols(), " "))
}

func commit() string {
	revision, modified := "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			switch {
			case setting.Key == "vcs.revision":
				revision = setting.Value
			case setting.Key == "vcs.modified" && setting.Value == "true":
				modified = " (modified)"
			}
		}
	}
	return revision + modified
}
