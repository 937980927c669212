package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
	"mcpx/internal/policy"
)

// TestChangeLock: if servers are approved several times at the same moment, the lock file has all approvals afterwards. The goroutines
// are as good as processes: each call of ChangeLock locks the folder anew. At first the file has no servers.
func TestChangeLock(t *testing.T) {
	cfg := &config.Config{Path: filepath.Join(t.TempDir(), "config.json")}
	if err := os.WriteFile(LockPath(cfg), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	many := 20
	if runtime.GOOS == "windows" {
		many = 1 // on Windows, processes do not take turns
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

// TestChangedTools_Gone: the tools of a server that is gone are forgotten, because servers may dial in under ever new names. A
// later server of the same name is not compared with the earlier one.
func TestChangedTools_Gone(t *testing.T) {
	var log bytes.Buffer
	c := &changedTools{
		log: slog.New(slog.NewTextHandler(&log, nil)), seen: make(map[string][]catalog.Tool), told: make(map[string][]string),
	}
	look := func(description string, names ...string) {
		var servers []catalog.Server
		for _, name := range names {
			tool, err := catalog.DecodeTool(fmt.Appendf(nil, `{"name":"t","description":%q,"inputSchema":{"type":"object"}}`, description))
			if err != nil {
				t.Fatal(err)
			}
			servers = append(servers, catalog.Server{Name: name, Known: true}.WithTools([]catalog.Tool{tool}))
		}
		snap := catalog.NewSnapshot(servers)
		snap.Rules = &policy.Rules{Servers: map[string]policy.ServerRules{"stays": {Pin: conf.PinWarn}, "a": {Pin: conf.PinWarn}}}
		c.look(snap)
	}
	look("one", "stays", "a")
	for i := range 100 {
		look("one", "stays", fmt.Sprint("b", i))
	}
	if len(c.seen) != 2 {
		t.Errorf("the tools of %d servers are kept", len(c.seen))
	}
	look("two", "stays", "a")
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "server=stays") {
		t.Errorf("got %s", text)
	}
}
