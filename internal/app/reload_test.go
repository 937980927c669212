package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
)

// TestFingerprint: a file that was young when it was read and has changed since has another fingerprint, even if its time and
// size are the same.
func TestFingerprint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	put := func(content string, age time.Duration) {
		t.Helper()
		when := time.Now().Add(-age)
		if os.WriteFile(path, []byte(content), 0o600) != nil || os.Chtimes(path, when, when) != nil {
			t.Fatal("writing the file")
		}
	}
	if !lookAt(path, fingerprint{}).same(fingerprint{}) {
		t.Error("a file that is not there has a fingerprint")
	}
	put("one", time.Second)
	when, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	young := lookAt(path, fingerprint{})
	put("two", 0)
	if err := os.Chtimes(path, when.ModTime(), when.ModTime()); err != nil {
		t.Fatal(err)
	}
	if lookAt(path, young).same(young) {
		t.Error("a young file of the same size and time counts as the same")
	}
	put("two", time.Hour)
	old := lookAt(path, young)
	if !old.settled || old.same(young) || !old.same(lookAt(path, fingerprint{})) {
		t.Errorf("got %+v", old)
	}
	put("two", time.Minute)
	if touched := lookAt(path, old); !touched.same(old) || touched.modified.Equal(old.modified) {
		t.Error("a file that was touched counts as changed")
	}
}

// TestReloader_OtherPrograms: a config with another folder of programs is applied once. The trail does not say that a program has
// changed.
func TestReloader_OtherPrograms(t *testing.T) {
	folders := []string{t.TempDir(), t.TempDir()}
	configs := make([]*config.Config, len(folders))
	for i, folder := range folders {
		configs[i] = &config.Config{Path: filepath.Join(t.TempDir(), "config.json")}
		configs[i].Programs.Dir = folder
	}
	var by []string
	r := &reloader{
		file: setup.ConfigFile{Path: configs[1].Path}, current: configs[0], stored: storedIn(configs[0]), log: slog.New(slog.DiscardHandler),
		load: func() (*config.Config, error) { return configs[1], nil }, apply: func(*config.Config) error { return nil },
		record: func(change configChange) { by = append(by, change.by) },
	}
	if err := r.reload(t.Context(), "mcpx reload", true); err != nil {
		t.Fatal(err)
	}
	r.followStored()
	if err := os.WriteFile(filepath.Join(folders[1], "a.js"), []byte("/** Says one. */\nreturn 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.followStored()
	if want := []string{"mcpx reload", "a changed program"}; !slices.Equal(by, want) {
		t.Errorf("applied by %q, want %q", by, want)
	}
}
