package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
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
		if err := Rewrite(loop, []byte("text")); err == nil || !strings.Contains(err.Error(), loop+": too many symbolic links") {
			t.Errorf("a file was replaced that cannot be read: %v", err)
		}
	}
	if left, err := os.ReadDir(folder); len(left) != 2 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestRewrite_Link: Rewrite writes the file behind links, also one that does not exist yet, and the links stay.
func TestRewrite_Link(t *testing.T) {
	folder := t.TempDir()
	first, second, file := filepath.Join(folder, "first"), filepath.Join(folder, "second"), filepath.Join(folder, "files", "file")
	if err := errors.Join(os.Symlink("second", first), os.Symlink(file, second)); err != nil {
		t.Skip(err) // Windows permits links only to some users
	}
	for _, text := range []string{"new", "rewritten"} {
		if err := Rewrite(first, []byte(text)); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		to, linked := os.Readlink(first)
		if err != nil || linked != nil || string(data) != text || to != "second" {
			t.Errorf("got %q, %v; the link is to %q, %v", data, err, to, linked)
		}
	}
}

// TestTarget_LinkedFolder: if a relative link is in a folder that is itself a link, Target returns the file to which the system
// follows the link.
func TestTarget_LinkedFolder(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dotfiles := filepath.Join(home, "dotfiles", "mcpx")
	err = errors.Join(os.MkdirAll(dotfiles, 0o755), os.WriteFile(filepath.Join(home, "dotfiles", "file"), []byte("text"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.Symlink(dotfiles, filepath.Join(home, "mcpx")), os.Symlink(filepath.Join("..", "file"), filepath.Join(dotfiles, "link")))
	if err != nil {
		t.Skip(err) // Windows permits links only to some users
	}
	got, err := Target(filepath.Join(home, "mcpx", "link"))
	if want := filepath.Join(home, "dotfiles", "file"); err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

// TestRewrite_Left: temporary files that a killed process has left are removed, those of another file and new ones are not.
func TestRewrite_Left(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "config.json")
	for name, age := range map[string]time.Duration{
		".config.json.mcpx-1": 2 * abandoned, ".config.json.mcpx-2": 0, ".other.json.mcpx-3": 2 * abandoned, "config.json": 2 * abandoned,
	} {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := Rewrite(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	var left []string
	for _, one := range entries {
		left = append(left, one.Name())
	}
	if want := ".config.json.mcpx-2 .other.json.mcpx-3 config.json"; err != nil || strings.Join(left, " ") != want {
		t.Errorf("left are %q, want %s", left, want)
	}
}
