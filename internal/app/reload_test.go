package app

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
)

// TestFingerprint: if a file was young when it was read, a later change gives it another fingerprint, even if its time and size
// stay the same.
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

// TestReloader_OtherPrograms: a reload with another folder of programs is applied only once, by the reload. The next check of the
// programs does not apply the config again, until a program in the new folder changes.
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

// TestReloader_LaterPrograms: without watch, and if no folder of programs existed at the start, mcpx follows the folder as soon
// as a reload or an edit has found one.
func TestReloader_LaterPrograms(t *testing.T) {
	for what, reload := range map[string]func(asked chan<- ReloadRequest, edits chan<- edit){
		"mcpx reload": func(asked chan<- ReloadRequest, _ chan<- edit) { asked <- ReloadRequest{By: "mcpx reload"} },
		"an edit": func(_ chan<- ReloadRequest, edits chan<- edit) {
			edits <- edit{by: "an edit", change: func(setup.ConfigFile) error { return nil }, done: make(chan error, 1)}
		},
	} {
		cfg := &config.Config{Path: filepath.Join(t.TempDir(), "config.json")}
		put := func(code string) {
			folder := filepath.Join(filepath.Dir(cfg.Path), "programs")
			if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "a.js"), []byte(code), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Test(t, func(t *testing.T) {
			var by []string
			asked, edits := make(chan ReloadRequest), make(chan edit)
			r := &reloader{
				file: setup.ConfigFile{Path: cfg.Path}, edits: edits, current: cfg, log: slog.New(slog.DiscardHandler),
				load: func() (*config.Config, error) { return cfg, nil }, apply: func(*config.Config) error { return nil },
				outcome: func() Reloaded { return Reloaded{} }, record: func(change configChange) { by = append(by, change.by) },
			}
			go r.run(t.Context(), asked, false) // ends with the test
			time.Sleep(2 * watchEvery)
			put("/** Says one. */\nreturn 1")
			reload(asked, edits)
			synctest.Wait()
			put("/** Says eleven. */\nreturn 11")
			time.Sleep(2 * watchEvery)
			synctest.Wait()
			if want := []string{what, "a changed program"}; !slices.Equal(by, want) {
				t.Errorf("applied by %q, want %q", by, want)
			}
		})
	}
}

// TestReload_AuthRemoved: a reload does not say that the removal of auth is in force, because the tokens are valid until mcpx restarts.
func TestReload_AuthRemoved(t *testing.T) {
	t.Chdir(t.TempDir())
	e := hosted(t, nil, `[{"principals":["alice"]}]`, "")
	open := *e.app.current.Load().config
	open.Auth = nil
	if err := e.app.reload(&open); err != nil {
		t.Fatal(err)
	}
	if got := e.app.reloaded; len(got.Keys) > 0 || !slices.Contains(got.Later, "auth") {
		t.Errorf("in force %q, later %q", got.Keys, got.Later)
	}
}
