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

// Help has the examples.
func (cmd *versionCommand) Help() string { return examples("mcpx version", "mcpx --version") }

// Run prints the text.
func (cmd *versionCommand) Run(s streams) error {
	fmt.Fprintln(s.out, versionText())
	return nil
}

// versionText has the versions of this binary, its source and its protocols.
func versionText() string {
	return fmt.Sprintf("mcpx %s\ncommit %s\n%s %s/%s\nprotocols %s",
		app.Version(), commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.Join(front.Protocols(), " "))
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
