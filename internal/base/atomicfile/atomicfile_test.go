package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestWrite: Write creates the folder, and replaces a file and its permissions. If it cannot replace the file, it
// leaves no temporary file behind.
func TestWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(folder, "file")
	for _, test := range []struct {
		text string
		mode fs.FileMode
	}{{"first", 0o600}, {"second", 0o644}} {
		if err := Write(path, []byte(test.text), test.mode); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		info, _ := os.Stat(path)
		if err != nil || string(data) != test.text || runtime.GOOS != "windows" && info.Mode().Perm() != test.mode {
			t.Errorf("%q, %v, %v", data, info.Mode(), err)
		}
	}
	if err := os.MkdirAll(filepath.Join(folder, "taken", "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	taken := filepath.Join(folder, "taken")
	if err := Write(taken, []byte("text"), 0o600); err == nil || !strings.Contains(err.Error(), taken+", which") ||
		strings.Contains(err.Error(), ".mcpx-") {
		t.Errorf("a folder was replaced, or the error names the temporary file: %v", err)
	}
	loop := filepath.Join(taken, "loop")
	if os.Symlink(loop, loop) == nil { // Windows permits links only to some users
		if err := Rewrite(loop, []byte("text")); err == nil || !strings.Contains(err.Error(), loop+", which") {
			t.Errorf("a file was replaced that cannot be read: %v", err)
		}
	}
	if left, err := os.ReadDir(folder); len(left) != 2 {
		t.Errorf("left: %v, %v", left, err)
	}
}
