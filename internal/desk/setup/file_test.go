package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConnect_ReadOnly checks that nothing is left half done if the folder is read-only.
func TestConnect_ReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	sys, c := linux(t), client(t, "cursor")
	file := c.File(sys)
	put(t, file, "{}\n")
	if err := os.Chmod(filepath.Dir(file), 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(file), 0o700) })
	b := Backups{Dir: filepath.Join(sys.home(), "backups")}
	change, err := b.Connect(c, file, Connection{Command: "/opt/bin/mcpx"}, reading)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write(change); err == nil || content(t, file) != "{}\n" || !strings.Contains(err.Error(), file+", which was not changed") {
		t.Errorf("got %v: %s", err, content(t, file))
	}
	if left, _ := os.ReadDir(b.Dir); len(left) != 0 {
		t.Errorf("left in the folder of backups: %v", left)
	}
	if _, known := b.record(file); known {
		t.Error("there is a record of what was not done")
	}
}

// TestWrite_Meanwhile checks that a change by another process since the file was read is not lost.
func TestWrite_Meanwhile(t *testing.T) {
	sys, c := linux(t), client(t, "cursor")
	file := c.File(sys)
	put(t, file, "{}\n")
	b := Backups{Dir: filepath.Join(sys.home(), "backups")}
	change, err := b.Connect(c, file, Connection{Command: "/opt/bin/mcpx"}, reading)
	if err != nil {
		t.Fatal(err)
	}
	put(t, file, `{"new": 1}`)
	if _, err := b.Write(change); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("got %v", err)
	}
	if got := content(t, file); got != `{"new": 1}` {
		t.Errorf("got %s", got)
	}
}

func TestDiff_Secrets(t *testing.T) {
	change := Change{File: "/f", Before: []byte("{}\n"), After: []byte(`{
  "GH_TOKEN": "hid\"den", "Authorization": "Bearer hidden",
  "args": ["--api-key", "hidden", "--token=hidden", "-H", "X: Bearer hidden"],
  "url": "https://example.com/?key=hidden&path=seen", "path": "seen"
}
secret = 'hidden'
`)}
	got := change.Diff(linux(t))
	if strings.Contains(got, "hid") || strings.Count(got, "seen") != 2 || strings.HasPrefix(got, "diff ") {
		t.Errorf("got %s", got)
	}
}
