package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"mcpx/internal/desk/secret"
	"mcpx/internal/desk/setup"
	"mcpx/internal/hosted/audit"
	"mcpx/internal/mcptest"
)

// TestKeepSecrets: if one of several secrets cannot be stored, KeepSecrets restores the keyring as it was before.
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
	asBefore := func() {
		t.Helper()
		if got, err := Secrets().Get(t.Context(), "a.KEY"); got != "old" || err != nil {
			t.Errorf("the secret of before is %q, %v", got, err)
		}
		if names, err := Secrets().Names(); len(names) != 1 || err != nil {
			t.Errorf("%q, %v", names, err)
		}
	}
	if _, err := KeepSecrets(t.Context(), secrets); err == nil {
		t.Error("an empty secret is stored")
	}
	asBefore()
	ctx, cancel := context.WithCancel(t.Context())
	undo, err := KeepSecrets(ctx, secrets[:2])
	if err != nil {
		t.Error(err)
	}
	for _, name := range []string{"a.KEY", "b.KEY"} {
		if got, err := Secrets().Get(t.Context(), name); got != "new" || err != nil {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	cancel()
	undo()
	asBefore()
}

// TestSecrets_NoHome: a user without a home folder has no secrets but those of the keyring. Another user can write to the folder for
// temporary files.
func TestSecrets_NoHome(t *testing.T) {
	others := t.TempDir()
	for _, folder := range []string{"TMPDIR", "TMP", "XDG_CONFIG_HOME", "HOME", "AppData"} {
		t.Setenv(folder, others)
	}
	t.Setenv("MCPX_KEYRING", "off")
	if _, err := secret.New(filepath.Join(others, "mcpx", "secrets")).Set(t.Context(), "token", "planted"); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"XDG_CONFIG_HOME", "HOME", "AppData"} {
		t.Setenv(folder, "")
	}
	if got, err := Secrets().Get(t.Context(), "token"); !errors.Is(err, secret.ErrNotFound) {
		t.Errorf("the secret is %q, %v", got, err)
	}
	if _, err := Secrets().Set(t.Context(), "token", "mine"); err == nil {
		t.Error("a secret is stored")
	}
}

// TestChange_Refused: if the keyring refuses the secrets of a change, the audit trail does not record the change. If the trail
// cannot record the change, or the config file cannot be written, the secrets are removed from the keyring again.
func TestChange_Refused(t *testing.T) {
	mcptest.NoLeaks(t)
	ownFolders(t)
	a, err := New(Options{Config: configOf(t, nil, everybody, ""), Profile: Hosted, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers": {}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	trail, err := audit.Open(log, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.auditor.trail, a.auditor.required = trail, true
	a.edits = make(chan edit)
	type outcome struct {
		status, records int
		kept            string
	}
	add := func(refused error, text string) (got outcome) {
		t.Helper()
		go func() { // ends with the edit
			e := <-a.edits
			e.done <- e.change(setup.ConfigFile{Path: file})
		}()
		w := httptest.NewRecorder()
		(&serversAPI{app: a}).change(w, httptest.NewRequest("POST", "/ui/servers", nil), change{
			action: "add", name: "x",
			edit: func(data []byte, _ string) ([]byte, error) {
				return append(data, '\n'), os.WriteFile(file, []byte(text), 0o600) // as if another process wrote text meanwhile
			},
			keep: func() (func(), error) {
				got.kept = "kept"
				return func() { got.kept += ", undone" }, refused
			},
		})
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		got.status, got.records = w.Code, strings.Count(string(data), `"servers_change"`)
		return got
	}
	const before = `{"mcpServers": {}}`
	if got := add(nil, before); got != (outcome{http.StatusOK, 1, "kept"}) {
		t.Errorf("added: %+v", got)
	}
	if got := add(errors.New("the keyring is locked"), before+"\n"); got != (outcome{http.StatusInternalServerError, 1, "kept, undone"}) {
		t.Errorf("not kept: %+v", got)
	}
	if got := add(nil, before); got != (outcome{http.StatusInternalServerError, 2, "kept, undone"}) {
		t.Errorf("not written: %+v", got)
	}
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	if got := add(nil, before); got != (outcome{http.StatusServiceUnavailable, 2, "kept, undone"}) {
		t.Errorf("not recorded: %+v", got)
	}
}
