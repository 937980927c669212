//go:build !windows

package files

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRead_Pipe: a read never waits for a named pipe. A part of the path may be a pipe, the folder itself may be one, or a pipe
// may take the place of the file at the last moment.
func TestRead_Pipe(t *testing.T) {
	folder := made(t)
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	link(t, "/dev/zero", filepath.Join(folder, "zero"))
	done := make(chan struct{})
	go func() { // ends after the reads, which must not wait
		defer close(done)
		f := New(folder)
		for _, path := range []string{"pipe", "pipe/a", "zero"} {
			if text, err := f.Read(path); err == nil {
				t.Errorf("%s: %q", path, text)
			}
			if _, err := f.Create(path, nil); err == nil {
				t.Errorf("created %s", path)
			}
		}
		if _, err := New(pipe).Read("a"); err == nil || !strings.Contains(err.Error(), "does not exist") {
			t.Error(err)
		}
		root, err := os.OpenRoot(folder)
		if err != nil {
			t.Error(err)
			return
		}
		defer root.Close()
		if file, err := root.OpenFile("pipe", os.O_RDONLY|withoutWaiting, 0); err != nil {
			t.Error(err)
		} else {
			_ = file.Close()
		}
		if _, err := root.OpenRoot("pipe/."); err == nil {
			t.Error("a pipe was opened as a folder")
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("a read waits")
	}
}
