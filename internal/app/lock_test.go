package app

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/desk/config"
)

// TestChangeLock: what several mcpx approve at once is all there, also in a lock file that has no servers.
func TestChangeLock(t *testing.T) {
	cfg := &config.Config{Path: filepath.Join(t.TempDir(), "config.json")}
	if err := os.WriteFile(LockPath(cfg), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	many := 20
	if runtime.GOOS == "windows" {
		many = 1 // there they do not take turns
	}
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			if err := ChangeLock(cfg, func(l Lock) { l.Approve(&catalog.Server{Name: fmt.Sprint("s", i)}) }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if lock, err := LoadLock(cfg); err != nil || len(lock) != many {
		t.Errorf("got %v, %v", lock, err)
	}
}
