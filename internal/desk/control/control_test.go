package control

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// runtimeFolder sets XDG_RUNTIME_DIR to a new folder, and returns the path of the folder for sockets inside, which does not
// exist yet.
func runtimeFolder(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the folder is in the user's own")
	}
	dir, err := os.MkdirTemp("/tmp", "mcpx-test-") // not t.TempDir, because the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return filepath.Join(dir, "mcpx")
}

// find returns the running processes whose config file is file.
func find(t *testing.T, file string) (mine []*Running) {
	t.Helper()
	running, _ := Find(t.Context())
	for _, r := range running {
		if r.File == file {
			mine = append(mine, r)
		} else {
			r.Close()
		}
	}
	return mine
}

// TestFolders: where only the folder for temporary files can be written, the socket is there, and commands look into each folder
// once.
func TestFolders(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the folder is in the user's own")
	}
	t.Setenv("XDG_RUNTIME_DIR", "")
	user := strconv.Itoa(os.Getuid())
	usual := []string{"/run/user/" + user + "/mcpx", "/tmp/mcpx-" + user}
	for dir, want := range map[string][]string{"": usual, "/tmp/": usual, "/state": append(slices.Clone(usual), "/state/mcpx-"+user)} {
		if t.Setenv("TMPDIR", dir); !slices.Equal(folders(), want) {
			t.Errorf("TMPDIR=%s: %q, want %q", dir, folders(), want)
		}
	}
}

func TestSocket(t *testing.T) {
	mcptest.NoLeaks(t)
	folder := runtimeFolder(t)
	file := filepath.Join(folder, "config.json")
	for range 2 { // two sockets at the same time; in the second round, after the first ones were closed
		one, err := Listen()
		if err != nil {
			t.Fatal(err)
		}
		two, err := Listen()
		if err != nil {
			t.Fatal(err)
		}
		one.Serve(Answers{Self: func() Process { return Process{PID: 1, File: file} }, Reload: func(context.Context) Outcome { return Outcome{Started: []string{"a"}} }})
		two.Serve(Answers{Self: func() Process { return Process{PID: 2, File: file} }, Reload: func(ctx context.Context) Outcome { <-ctx.Done(); return Outcome{} }})
		if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the folder: %v %v", info, err)
		}
		mine := find(t, file)
		if len(mine) != 2 {
			t.Fatalf("%d processes", len(mine))
		}
		for _, r := range mine {
			if r.PID == 1 {
				if out, err := r.Reload(t.Context()); err != nil || strings.Join(out.Started, "") != "a" {
					t.Errorf("got %+v, %v", out, err)
				}
				continue
			}
			// This reload goes on until Close ends its context. The command stops waiting when its own context ends.
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			if _, err := r.Reload(ctx); err == nil {
				t.Error("an outcome of a reload that goes on")
			}
			cancel()
		}
		one.Close()
		two.Close()
		if left, _ := os.ReadDir(folder); len(left) != 0 {
			t.Errorf("%v is left", left)
		}
	}
}

// TestFind_Link: a process is found once if $TMPDIR is another name of /tmp.
func TestFind_Link(t *testing.T) {
	mcptest.NoLeaks(t)
	link := filepath.Join(filepath.Dir(runtimeFolder(t)), "link")
	if err := os.Symlink("/tmp", link); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", link)
	s, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Serve(Answers{Self: func() Process { return Process{PID: 1, File: link} }})
	mine := find(t, link)
	for _, r := range mine {
		r.Close()
	}
	if len(mine) != 1 {
		t.Errorf("found %d times", len(mine))
	}
}

// TestSocket_Hostile: connections that send nothing or invalid requests do not prevent a later reload.
func TestSocket_Hostile(t *testing.T) {
	mcptest.NoLeaks(t)
	folder := runtimeFolder(t)
	s, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var reloads atomic.Int32
	s.Serve(Answers{Self: func() Process { return Process{PID: 1, File: folder} }, Reload: func(context.Context) Outcome { reloads.Add(1); return Outcome{} }})
	for _, said := range []string{"", "\n", "{}\n", "[1]\n", `{"reload":"yes"}` + "\n", strings.Repeat("x", 2*maxBytes)} {
		conn, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(said))
		conn.Close()
	}
	mine := find(t, folder)
	if len(mine) != 1 {
		t.Fatalf("%d processes", len(mine))
	}
	if _, err := mine[0].Reload(t.Context()); err != nil || reloads.Load() != 1 {
		t.Errorf("%v after %d reloads", err, reloads.Load())
	}
}

// TestListen_Folder: if other users can write to the folder for sockets, or if its path is a link or a file, no socket is opened
// there, and Find does not connect to sockets there.
func TestListen_Folder(t *testing.T) {
	folder := runtimeFolder(t)
	elsewhere := filepath.Join(filepath.Dir(folder), "elsewhere")
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func() error{
		"open to all": func() error {
			if err := os.Mkdir(folder, 0o700); err != nil {
				return err
			}
			return os.Chmod(folder, 0o777)
		},
		"a link": func() error { return os.Symlink(elsewhere, folder) },
		"a file": func() error { return os.WriteFile(folder, nil, 0o600) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if listener, err := net.Listen("unix", filepath.Join(folder, "1-x.sock")); err == nil { // a socket of the other user
			defer listener.Close()
		}
		if err := Claim(folder); err == nil {
			t.Errorf("%s: the folder is used", name)
		}
		if _, silent := Find(t.Context()); silent != 0 {
			t.Errorf("%s: a command connects to it", name)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFind_Stale: Find skips the socket of a killed process, and removes it if it is old. It counts a process that does not
// answer.
func TestFind_Stale(t *testing.T) {
	folder := runtimeFolder(t)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	left := func(name string) string {
		path := filepath.Join(folder, name)
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		if err != nil {
			t.Fatal(err)
		}
		listener.SetUnlinkOnClose(false)
		listener.Close()
		return path
	}
	young, old := left("1-a.sock"), left("2-b.sock")
	if when := time.Now().Add(-time.Hour); os.Chtimes(old, when, when) != nil {
		t.Fatal("setting the time")
	}
	hung, err := net.Listen("unix", filepath.Join(folder, "3-c.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	if running, silent := Find(t.Context()); len(running) != 0 && running[0].File == "" || silent != 1 {
		t.Errorf("%v running, %d silent", running, silent)
	}
	if _, err := os.Stat(young); err != nil {
		t.Error("a socket that may be about to listen was removed")
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("an old socket without a process was kept")
	}
}
