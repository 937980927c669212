package app

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/zalando/go-keyring"

	"mcpx/internal/desk/setup"
	"mcpx/internal/hosted/audit"
	"mcpx/internal/mcptest"
)

// TestKeepSecrets: if one secret cannot be stored, the keyring has what it had before.
func TestKeepSecrets(t *testing.T) {
	for _, folder := range []string{"XDG_CONFIG_HOME", "HOME", "AppData"} {
		t.Setenv(folder, t.TempDir())
	}
	t.Setenv("MCPX_KEYRING", "")
	keyring.MockInit()
	if unsealed, err := Secrets().Set(t.Context(), "a.KEY", "old"); unsealed != nil || err != nil {
		t.Fatal(unsealed, err)
	}
	secrets := []setup.Secret{{Name: "a.KEY", Value: "new"}, {Name: "b.KEY", Value: "new"}, {Name: "c.KEY"}}
	if err := KeepSecrets(t.Context(), secrets); err == nil {
		t.Error("an empty secret is stored")
	}
	if got, err := Secrets().Get(t.Context(), "a.KEY"); got != "old" || err != nil {
		t.Errorf("the secret of before is %q, %v", got, err)
	}
	if names, err := Secrets().Names(); len(names) != 1 || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	if err := KeepSecrets(t.Context(), secrets[:2]); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"a.KEY", "b.KEY"} {
		if got, err := Secrets().Get(t.Context(), name); got != "new" || err != nil {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}

// TestChange_NotRecorded: a change that the audit trail cannot record stores nothing.
func TestChange_NotRecorded(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, folder := range []string{"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOME"} {
		t.Setenv(folder, t.TempDir())
	}
	a, err := New(Options{Config: configOf(t, nil, everybody, ""), Profile: Hosted, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers": {}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	trail, err := audit.Open(filepath.Join(t.TempDir(), "audit.jsonl"), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.auditor.trail, a.auditor.required = trail, true
	a.edits = make(chan edit)
	add := func() (status int, kept bool) {
		go func() { // ends with the edit
			e := <-a.edits
			e.done <- e.change(setup.ConfigFile{Path: file})
		}()
		w := httptest.NewRecorder()
		(&serversAPI{app: a}).change(w, httptest.NewRequest("POST", "/ui/servers", nil), change{
			action: "add", name: "x",
			edit: func(data []byte, _ string) ([]byte, error) { return data, nil },
			keep: func() error { kept = true; return nil },
		})
		return w.Code, kept
	}
	if status, kept := add(); status != http.StatusOK || !kept {
		t.Errorf("recorded: %d, stored %t", status, kept)
	}
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	if status, kept := add(); status != http.StatusServiceUnavailable || kept {
		t.Errorf("not recorded: %d, stored %t", status, kept)
	}
}
