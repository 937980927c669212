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

// TestCheck_KeepsLists: the catalogue that check leaves on disk has what a server lists beside
// its tools, also if that comes late. With it a first client sees the texts as they stay.
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
