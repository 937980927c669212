package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mcpx/internal/mcptest"
)

// TestServe_LogPipe: a pipe as log_file, or with --trace, is refused. To open it would block until somebody reads it, in the daemon too.
func TestServe_LogPipe(t *testing.T) {
	mcptest.Parallel(t)
	for name, h := range map[string]*home{"alone": newHome(t), "daemon": newDaemonHome(t)} {
		path := h.config(t, map[string]server{}, map[string]any{"log_file": "pipe"})
		pipe := filepath.Join(filepath.Dir(path), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, stderr, code := h.run(t, "", "--config", path); code != 0 || !strings.Contains(stderr, "log_file: "+pipe+" is not a regular file") {
			t.Errorf("%s: exit %d, stderr %q", name, code, stderr)
		}
		if _, stderr, code := h.run(t, "", "--config", path, "serve", "--trace", pipe); code != 1 || !strings.Contains(stderr, "--trace: "+pipe+" is not a regular file") {
			t.Errorf("%s: exit %d, stderr %q", name, code, stderr)
		}
	}
}
