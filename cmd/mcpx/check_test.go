package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// TestCheck_KeepsLists: mcpx check stores each server's resources and prompts on disk, even if the server
// lists them late. So the descriptions that the first client gets do not change afterwards.
func TestCheck_KeepsLists(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	slow := mcptest.Fault{Kind: mcptest.FaultDelay, Delay: 500 * time.Millisecond}.On("resources/list").Always()
	notes := mcptest.Spec{Resources: json.RawMessage(`[{"uri":"note://late","name":"late"}]`)}.HTTP(t)
	notes.Script(slow)
	h.must(t, 0, "check", "--config", h.config(t, map[string]server{"notes": {"type": "http", "url": notes.URL}}, nil))
	var kept strings.Builder
	err := filepath.WalkDir(filepath.Join(h.dir, "cache"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		kept.Write(data)
		return err
	})
	if err != nil || !strings.Contains(kept.String(), "note://late") {
		t.Errorf("%v; on disk: %s", err, kept.String())
	}
}
