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

// TestCheck_ServeFaults: mcpx check fails if mcpx serve would refuse the certificates or the audit trail, and says why. An audit
// trail that can be written is no fault, and check writes nothing for it.
func TestCheck_ServeFaults(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	noFolder, trail := filepath.Join(h.dir, "file"), filepath.Join(h.dir, "audit", "trail.jsonl")
	if err := os.WriteFile(noFolder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hosted := func(file string) string {
		return h.config(t, map[string]server{"box": fake(t, mcptest.Spec{})}, map[string]any{
			"tls":   map[string]any{"cert": "no.pem", "key": "no.key"},
			"audit": map[string]any{"file": file},
		})
	}
	out, _, code := h.run(t, "", "check", "--config", hosted(filepath.Join(noFolder, "trail.jsonl")))
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{"fault     tls: reading the certificates: open ", "fault     audit.file: ", "1 server: 1 ready"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	var got struct {
		OK     bool     `json:"ok"`
		Faults []string `json:"faults"`
	}
	out, _, code = h.run(t, "", "check", "--json", "--config", hosted(trail))
	if err := json.Unmarshal([]byte(out), &got); code != 1 || err != nil || got.OK || len(got.Faults) != 1 || !strings.HasPrefix(got.Faults[0], "tls: ") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Dir(trail)); err == nil {
		t.Error("check made the folder of the audit trail")
	}
}
