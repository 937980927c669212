package registry

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/mcptest"
)

// TestCacheSweep: catalogues, files of package learned and unfinished files that were unused for a month are deleted. Files of
// configured servers are kept, and files that mcpx did not write.
func TestCacheSweep(t *testing.T) {
	mcptest.NoLeaks(t)
	dir := t.TempDir()
	const day = 24 * time.Hour
	put := func(name, content string, age time.Duration) string {
		t.Helper()
		path, when := filepath.Join(dir, name), time.Now().Add(-age)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const record = `{"format":1,"protocol":"","modern":false,"tools":[]}`
	gone := []string{
		put(Key("gone")+".json", record, 31*day),
		put(Key("gone")+".shapes.json", `{"format":1,"tools":[]}`, 31*day),
		put(Key("older format")+".json", `{"format":0}`, 400*day),
		put(Key("killed")+".123456.tmp", `{"form`, 31*day),
		put(Key("killed early")+".123456.tmp", ``, 31*day),
		put("."+Key("killed")+".shapes.json.mcpx-123456", `{"format":1`, 31*day),
	}
	off := never("off")
	off.Disabled = true
	used := put(Key("used")+".json", record, 90*day)
	kept := []string{
		used, put(Key("off")+".json", record, 90*day), put(Key("used")+".shapes.json", `{"format":1,"tools":[]}`, 90*day),
		put(Key("young")+".json", record, 29*day), put(Key("writing")+".7.tmp", record, time.Minute),
		put("notes.json", record, 90*day), put("savings.json", record, 90*day), put(Key("x")[1:]+".json", record, 90*day),
		put(Key("x")+".txt", record, 90*day), put(Key("x")+".json.bak", record, 90*day),
		put("A"+Key("x")[1:]+".json", record, 90*day), put(Key("foreign")+".json", `{"tools":[]}`, 90*day),
	}
	folder, link := Key("folder")+".json", Key("link")+".json"
	if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-90 * day)
	if err := os.Chtimes(filepath.Join(dir, folder), old, old); err != nil {
		t.Fatal(err)
	}
	kept = append(kept, folder)
	if os.Symlink(filepath.Join(dir, "notes.json"), filepath.Join(dir, link)) == nil {
		kept = append(kept, link)
	}

	// The servers never answer, so nothing is written to the cache.
	r := New([]Server{never("used"), off}, Options{CacheDir: dir})
	if info, err := os.Stat(filepath.Join(dir, used)); err != nil || time.Since(info.ModTime()) > day {
		t.Errorf("a file that was read has the time %v, %v", info.ModTime(), err)
	}
	r.Start()
	t.Cleanup(func() { r.Close(0) })
	mcptest.WaitFor(t, "the sweep", patience, func() bool {
		return !slices.ContainsFunc(gone, func(name string) bool {
			_, err := os.Lstat(filepath.Join(dir, name))
			return err == nil
		})
	})
	r.Close(0)
	var left []string
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	slices.Sort(kept)
	if err != nil || !slices.Equal(left, kept) {
		t.Errorf("left %q, %v\nwant %q", left, err, kept)
	}
}

// TestCacheSweep_Ends: the sweep stops when the registry is closed, however many files are left to check.
func TestCacheSweep_Ends(t *testing.T) {
	dir, old := t.TempDir(), time.Now().Add(-2*unusedAfter)
	path := filepath.Join(dir, Key("one")+".json")
	if os.WriteFile(path, []byte(recordHead), 0o600) != nil || os.Chtimes(path, old, old) != nil {
		t.Fatal("writing a file")
	}
	stop := make(chan struct{})
	close(stop)
	c := &cache{dir: dir}
	if n := c.sweep(nil, stop); n != 0 {
		t.Errorf("%d files deleted after the end", n)
	}
	if n := c.sweep(nil, nil); n != 1 {
		t.Errorf("%d files deleted, want 1", n)
	}
}

// TestCacheSweep_Daily: a process that runs for long deletes the catalogues of servers that its config does not have any more. Those that it
// uses stay, also if another process deletes.
func TestCacheSweep_Daily(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		used, gone := filepath.Join(dir, Key("used")+".json"), filepath.Join(dir, Key("gone")+".json")
		for _, path := range []string{used, gone} {
			if err := os.WriteFile(path, []byte(`{"format":1,"protocol":"","modern":false,"tools":[]}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := New([]Server{never("used")}, Options{CacheDir: dir})
		defer r.Close(0)
		r.Start()
		synctest.Wait()
		old := time.Now().Add(-2 * unusedAfter)
		if os.Chtimes(used, old, old) != nil || os.Chtimes(gone, old, old) != nil {
			t.Fatal("the first sweep has deleted files")
		}
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		r.cache.sweep(nil, nil) // what a process without these servers does
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 1 || left[0].Name() != Key("used")+".json" {
			t.Errorf("left %v, %v", left, err)
		}
	})
}
