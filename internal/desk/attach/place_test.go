package attach

import (
	"fmt"
	"mcpx/internal/desk/control"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestPlaceOf: two sessions have the same daemon if they differ only in environment variables that mcpx itself does not read.
// With another config, home folder or proxy, a session has another daemon. The path of the daemon's files contains no value of a
// variable.
func TestPlaceOf(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no daemon")
	}
	dir, err := os.MkdirTemp("/tmp", "mcpx-place-") // not t.TempDir, because the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	file, link := filepath.Join(dir, "a.json"), filepath.Join(dir, "link.json")
	if os.WriteFile(file, nil, 0o600) != nil || os.Symlink(file, link) != nil {
		t.Fatal("making files")
	}
	place := func(config string, environ ...string) Place {
		t.Helper()
		p, err := PlaceOf(config, environ)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	base := place(file, "HOME=/h", "TOKEN=secret", "TERM=xterm")
	bus := fmt.Sprintf("DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/%d/bus", os.Getuid())
	for _, same := range []Place{place(file, "TERM=dumb", "HOME=/h"), place(link, "HOME=/h"), place(file, "HOME=/h", "TZ=UTC", "TMPDIR=/t", bus)} {
		if same != base {
			t.Errorf("%s and %s", base, same)
		}
	}
	for _, other := range []Place{place(file+"2", "HOME=/h"), place(file, "HOME=/other"), place(file, "HOME=/h", "HTTPS_PROXY=http://p")} {
		if other == base {
			t.Errorf("%s for both", base)
		}
	}
	if filepath.Dir(string(base)) != filepath.Join(dir, "mcpx") || strings.Contains(string(base), "secret") {
		t.Errorf("got %s", base)
	}
	gone := place(filepath.Join(dir, "gone.json"), "HOME=/h")
	if os.Symlink(dir, filepath.Join(dir, "here")) != nil || place(filepath.Join(dir, "here", "gone.json"), "HOME=/h") != gone {
		t.Error("a config file that is gone has two daemons, by two names of its folder")
	}
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, strings.Repeat("long/", 20)))
	if err := os.MkdirAll(os.Getenv("XDG_RUNTIME_DIR"), 0o700); err != nil {
		t.Fatal(err)
	}
	if p, err := PlaceOf(file, nil); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("%s, %v", p, err)
	}
}

// TestPlaceOf_Fallback: if $XDG_RUNTIME_DIR is not set, or names a file or the folder of another user, the daemon's files are in
// the user's cache folder.
func TestPlaceOf_Fallback(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no daemon")
	}
	dir, err := os.MkdirTemp("/tmp", "mcpx-place-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	cache, err := os.UserCacheDir()
	file, strange := filepath.Join(dir, "file"), filepath.Join(dir, "strange")
	if err != nil || os.WriteFile(file, nil, 0o600) != nil || os.Mkdir(strange, 0o777) != nil {
		t.Fatal("making files", err)
	}
	all := []string{filepath.Join(dir, "missing"), file}
	if !control.Own(usualRuntime()) {
		all = append(all, "")
	}
	if os.Getuid() == 0 {
		if err := os.Chown(strange, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		all = append(all, strange)
	}
	for _, folder := range all {
		t.Setenv("XDG_RUNTIME_DIR", folder)
		p, err := PlaceOf(filepath.Join(dir, "config.json"), nil)
		if err != nil || filepath.Dir(string(p)) != filepath.Join(cache, "mcpx") {
			t.Errorf("%q: %s, %v", folder, p, err)
		}
	}
	if _, err := os.Stat(filepath.Join(strange, "mcpx")); err == nil {
		t.Error("something was made in the folder of another user")
	}
}
