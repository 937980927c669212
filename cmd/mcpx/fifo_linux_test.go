package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gopkg.in/natefinch/lumberjack.v2"

	"mcpx/internal/mcptest"
)

// TestServe_LogPipe: a pipe that nobody reads, as log_file or with --trace, is refused. To open it would block, in the daemon too.
func TestServe_LogPipe(t *testing.T) {
	mcptest.Parallel(t)
	for name, h := range map[string]*home{"alone": newHome(t), "daemon": newDaemonHome(t)} {
		path := h.config(t, map[string]server{}, map[string]any{"log_file": "pipe"})
		pipe := filepath.Join(filepath.Dir(path), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, stderr, code := h.run(t, "", "--config", path); code != 0 || !strings.Contains(stderr, "log_file: "+pipe+" is a pipe that nobody reads") {
			t.Errorf("%s: exit %d, stderr %q", name, code, stderr)
		}
		if _, stderr, code := h.run(t, "", "--config", path, "serve", "--trace", pipe); code != 1 || !strings.Contains(stderr, "--trace: "+pipe+" is a pipe that nobody reads") {
			t.Errorf("%s: exit %d, stderr %q", name, code, stderr)
		}
	}
}

// TestServe_LogStderr: --trace and log_file may be a pipe that somebody reads, such as what /dev/stderr mostly is.
func TestServe_LogStderr(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{}, map[string]any{"log_file": "/dev/stderr"})
	_, stderr, code := h.run(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n", "--config", path, "serve", "--trace", "/dev/stderr")
	if code != 0 || !strings.Contains(stderr, `"from":"client"`) || strings.Count(stderr, "every message is written to a file") != 2 {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
}

// TestBegin_Device: a device is not renamed when as much was written to it as fits into a file.
func TestBegin_Device(t *testing.T) {
	null := filepath.Join(t.TempDir(), "null")
	if err := os.Symlink(os.DevNull, null); err != nil {
		t.Fatal(err)
	}
	out, err := begin(&lumberjack.Logger{Filename: null, MaxSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for range 3 {
		if _, err := out.Write(make([]byte, 1<<19)); err != nil {
			t.Fatal(err)
		}
	}
	if target, err := os.Readlink(null); target != os.DevNull {
		t.Errorf("%q, %v", target, err)
	}
}
