package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestConfigUnreadable: commands that edit a config which cannot be read say the same as commands that only read it.
func TestConfigUnreadable(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	loop := filepath.Join(h.dir, "loop.json")
	if err := os.Symlink(loop, loop); err != nil {
		t.Skip(err) // Windows permits links only to some users
	}
	h.write(t, "folder/mcp.json", `{"mcpServers":{}}`)
	for path, why := range map[string]string{
		loop: "too many levels of symbolic links", filepath.Join(h.dir, "folder"): "is a folder, not a file\nmcpx: hint: did you mean ",
	} {
		for _, args := range []string{"check", "add a --no-check -- true", "remove a", "enable a", "disable a", "init --undo --yes"} {
			words := append([]string{"--config", path}, strings.Fields(args)...)
			_, stderr, code := h.run(t, "", words...)
			if want := "mcpx: error: reading config " + path + ": " + why; code != 2 || !strings.HasPrefix(stderr, want) {
				t.Errorf("%s: exit %d, got  %q\nwant %q", args, code, stderr, want)
			}
		}
	}
}
