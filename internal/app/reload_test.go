package app

import (
	"os"
	"path/filepath"
	"testing"
	"time"
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
