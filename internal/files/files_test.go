package files

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// made makes a folder with files: path and text, in turns. It returns the path of the folder without symbolic links.
func made(t *testing.T, files ...string) string {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(folder, files[i])
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(files[i+1]), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
}

// TestRead: a relative path begins at each folder in turn, an absolute one must lie in a folder, and the text is unchanged.
func TestRead(t *testing.T) {
	text := "\uFEFFa\r\nü\x00 \U0001F600 {\"$file\":\"b\"}\n"
	first, second := made(t, "a.txt", text, "sub/deep/b.txt", "b"), made(t, "a.txt", "other", "c d.txt", "c")
	f := New(first, second, first, "relative", string(filepath.Separator))
	if len(f) != 2 {
		t.Fatalf("folders: %q", f)
	}
	for path, want := range map[string]string{
		"a.txt": text, "sub/deep/b.txt": "b", "c d.txt": "c",
		filepath.Join(first, "a.txt"): text, filepath.Join(second, "a.txt"): "other",
	} {
		if got, err := f.Read(path); got != want || err != nil {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

// TestRead_LinkedFolder: a folder that is itself behind a link can be named by both of its paths.
func TestRead_LinkedFolder(t *testing.T) {
	folder := made(t, "a.txt", "a")
	linked := filepath.Join(made(t), "linked")
	link(t, folder, linked)
	f := New(linked)
	for _, path := range []string{"a.txt", filepath.Join(linked, "a.txt"), filepath.Join(folder, "a.txt")} {
		if got, err := f.Read(path); got != "a" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

// TestRefused: paths that lead out of the folders or to hidden files are refused, for reading and for creating, whether the file
// exists or not. So are links to files and folders, also within the folder.
func TestRefused(t *testing.T) {
	outside := made(t, "secret", "secret", "dir/secret", "secret")
	folder := made(t, ".env", "secret", ".git/config", "secret", "a/.ssh/key", "secret", "a/b", "b", "a/large", "")
	link(t, filepath.Join(outside, "secret"), filepath.Join(folder, "link"))
	link(t, filepath.Join(outside, "dir"), filepath.Join(folder, "dir"))
	link(t, ".git", filepath.Join(folder, "inner"))
	link(t, ".env", filepath.Join(folder, "visible"))
	link(t, filepath.Join(outside, "new"), filepath.Join(folder, "dangling"))
	f := New(folder)
	sibling := filepath.Join(filepath.Dir(folder), filepath.Base(folder)+"x", "secret")
	for _, path := range []string{
		"", ".", "..", "/", "a", "a/", "/a/b", "a//b", "./a/b", "a/../a/b", "a/./b", "../" + filepath.Base(outside) + "/secret",
		filepath.Join(outside, "secret"), folder, folder + "/", folder + "/../" + filepath.Base(outside) + "/secret",
		folder + "/.env", sibling, ".env", ".git/config", "a/.ssh/key", "...", "a/b/c", "link", "dir/secret", "inner/config", "visible",
		"dangling", "\u200c.env", "a/b\n", "a/\x00b", "\xff", "/etc/passwd", "/dev/zero", "/proc/self/environ", "file:///etc/passwd",
		`\\server\share\a`, `\\?\C:\a`, "~/.ssh/id_rsa", strings.Repeat("a/", 5000) + "b", strings.Repeat("a", 5000), folder + strings.Repeat("/..", 20),
	} {
		var own *Error
		if text, err := f.Read(path); text != "" || !errors.As(err, &own) {
			t.Errorf("reading %.60q: %q, %v", path, text, err)
		} else if strings.Contains(err.Error(), outside) && !strings.HasPrefix(path, outside) {
			t.Errorf("reading %.60q: the error names another folder: %v", path, err)
		}
		if path == `\\server\share\a` || path == `\\?\C:\a` { // possible names where a backslash is no separator
			continue
		}
		if at, err := f.Create(path, []byte("x")); at != "" || !errors.As(err, &own) {
			t.Errorf("creating %.60q: %q, %v", path, at, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(outside, "new")); err == nil {
		t.Error("a file was created through a link")
	}
	if _, err := (Folders{}).Read("a"); err == nil {
		t.Error("read without a folder")
	}
}

// TestRead_Size: a file of the largest size is read, and a larger one, or one that is no text, is refused.
func TestRead_Size(t *testing.T) {
	folder := made(t, "bytes", "\xff\xfe", "empty", "", "most", strings.Repeat("a", maxBytes), "more", strings.Repeat("a", maxBytes+1))
	sparse, err := os.Create(filepath.Join(folder, "huge"))
	if err == nil {
		err = errors.Join(sparse.Truncate(1<<40), sparse.Close())
	}
	if err != nil {
		t.Log(err)
	}
	f := New(folder)
	for path, want := range map[string]string{"bytes": "UTF-8", "more": "larger than 16 MB", "huge": "larger than 16 MB"} {
		if text, err := f.Read(path); err == nil || !strings.Contains(err.Error(), want) && path != "huge" {
			t.Errorf("%s: %d bytes, %v", path, len(text), err)
		}
	}
	if text, err := f.Read("most"); len(text) != maxBytes || err != nil {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if text, err := f.Read("empty"); text != "" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// TestCreate: a new file has exactly the data. Nothing that exists is replaced, and no folder is made.
func TestCreate(t *testing.T) {
	folder, second := made(t, "old", "old", "sub/old", "old"), made(t)
	f := New(folder, second)
	data := []byte("\x00\xff\r\n")
	for path, want := range map[string]string{
		"new": filepath.Join(folder, "new"), "sub/new": filepath.Join(folder, "sub", "new"), filepath.Join(second, "new"): filepath.Join(second, "new"),
	} {
		at, err := f.Create(path, data)
		if err != nil || at != want {
			t.Fatalf("%s: %q, %v", path, at, err)
		}
		info, err := os.Stat(at)
		if got, _ := os.ReadFile(at); !bytes.Equal(got, data) || err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %q, %v", path, got, info)
		}
		if _, err := f.Create(path, []byte("again")); err == nil || !strings.Contains(err.Error(), "exists already") {
			t.Errorf("%s again: %v", path, err)
		}
	}
	for _, path := range []string{"old", "sub/old", "sub", "missing/new", "old/new"} {
		if at, err := f.Create(path, data); err == nil {
			t.Errorf("created %s", at)
		}
	}
	if _, err := f.Create("missing/new", data); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("in a folder that is missing: %v", err) // of a new file "does not exist" says nothing
	}
	if got, _ := os.ReadFile(filepath.Join(folder, "old")); string(got) != "old" {
		t.Errorf("replaced: %q", got)
	}
	if _, err := f.Create("large", make([]byte, maxBytes+1)); err == nil {
		t.Error("created a file that is too large")
	}
}

// TestSwapped: a program puts a link in the place of a folder and of a file, again and again. Whatever a read meets, it never
// returns what the links lead to.
func TestSwapped(t *testing.T) {
	outside := made(t, "file", "secret")
	folder := made(t, "dir/file", "open", ".hidden/file", "secret", "file", "open")
	link(t, ".hidden", filepath.Join(folder, "inner"))
	link(t, outside, filepath.Join(folder, "outer"))
	link(t, filepath.Join(outside, "file"), filepath.Join(folder, "link"))
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() { // ends when done is closed
		defer close(stopped)
		at := func(name string) string { return filepath.Join(folder, name) }
		for {
			for _, pair := range [][2]string{{"dir", "inner"}, {"dir", "outer"}, {"file", "link"}} {
				select {
				case <-done:
					return
				default:
				}
				_ = os.Rename(at(pair[0]), at("away"))
				_ = os.Rename(at(pair[1]), at(pair[0]))
				_ = os.Rename(at(pair[0]), at(pair[1]))
				_ = os.Rename(at("away"), at(pair[0]))
			}
		}
	}()
	f := New(folder)
	read := 0
	for range 3000 {
		for _, path := range []string{"dir/file", "file"} {
			text, err := f.Read(path)
			if text == "secret" || text != "" && text != "open" {
				t.Fatalf("%s: %q", path, text)
			}
			if err == nil {
				read++
			}
		}
	}
	close(done)
	<-stopped
	t.Logf("%d of 6000 were read", read)
}

// TestFaultOnWindows: faultOnWindows refuses exactly the names that Windows takes for other names.
func TestFaultOnWindows(t *testing.T) {
	for _, name := range []string{"a:b", "a.txt::$DATA", "C:", "GIT~1", "a~2.txt", "a.", "a ", "a...", `a\b`, "a?", "a*", "<", `"`} {
		if faultOnWindows(name) == "" {
			t.Errorf("%q is not refused", name)
		}
	}
	for _, name := range []string{"a", "a b.txt", "a~b", "~", "ü"} {
		if why := faultOnWindows(name); why != "" {
			t.Errorf("%q: %s", name, why)
		}
	}
	if runtime.GOOS == "windows" {
		for _, name := range []string{"NUL", "con", "COM1.txt", "sub/AUX"} {
			if _, err := split(name); err == nil {
				t.Errorf("%q is not refused", name)
			}
		}
	}
}
