package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"mcpx/internal/mcptest"
)

// enter makes this process work in h, with a keyring in memory that is empty.
func (h *home) enter(t *testing.T) {
	t.Helper()
	for _, pair := range h.env() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	t.Setenv("MCPX_KEYRING", "")
	keyring.MockInit()
}

// TestInit_Keyring: mcpx init offers to move plain-text credentials from the config to the keyring. Afterwards
// the servers work as before, and can be removed from the clients' files. A second init changes nothing.
func TestInit_Keyring(t *testing.T) {
	h := newHome(t)
	h.enter(t)
	behind, err := url.Parse(mcptest.Spec{}.HTTP(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	behind.Path = ""
	proxy := httputil.NewSingleHostReverseProxy(behind)
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hush-1111" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(guarded.Close)
	cursor := `{"mcpServers": {"web": {"url": "` + guarded.URL + `/mcp", "headers": {"Authorization": "Bearer hush-1111"}}, "b": {"command": "no-such-program", "env": {"B_KEY": "hush-2222"}}}}`
	file := h.write(t, ".cursor/mcp.json", cursor)
	say := func(answers string, args ...string) (string, int) {
		t.Helper()
		var out lockedBuffer
		code := run(context.Background(), args, streams{in: strings.NewReader(answers), out: &out, err: &out, terminal: true, getenv: os.LookupEnv})
		if strings.Contains(out.String(), "hush-") {
			t.Errorf("a secret is on the screen:\n%s", out.String())
		}
		return out.String(), code
	}

	// Without a keyring the user is not asked, and --keyring is refused.
	keyring.MockInitWithError(errors.New("locked"))
	out, code := say("y\n", "init", "--no-check", "--config", filepath.Join(h.dir, "without.json"))
	hasAll(t, out, "2 servers came with a token or password in plain text")
	if strings.Contains(out, "keyring of this system (") || strings.Contains(out, "--keyring") || code != 0 {
		t.Errorf("exit %d:\n%s", code, out)
	}
	out, code = say("", "init", "--no-check", "--keyring", "--yes")
	hasAll(t, out, "nothing was written: there is no keyring", `hint: leave --keyring out, and write "${NAME}" or "${file:PATH}" in the config`)
	if _, err := os.Stat(h.own()); err == nil || code != exitFailed {
		t.Errorf("exit %d, and a config: %v", code, err)
	}

	// If the change could not be recorded, the keyring stays as it is.
	keyring.MockInit()
	records := filepath.Join(filepath.Dir(h.own()), "backups", "connected.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(records), 0o700), os.WriteFile(records, []byte("[{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	out, code = say("", "init", "--no-check", "--keyring", "--yes")
	hasAll(t, out, records, "; nothing was written")
	if _, err := os.Stat(h.own()); err == nil || code != exitFailed {
		t.Errorf("exit %d, and a config: %v", code, err)
	}
	if out, _ := say("", "secret", "list"); !strings.Contains(out, "there are no secrets") {
		t.Errorf("got %s", out)
	}
	if err := os.Remove(records); err != nil {
		t.Fatal(err)
	}

	out, code = say("y\ny\ny\ny\n", "init")
	hasAll(t, out, "2 servers have a token or password in plain text. Move them to the keyring of this system (", "web.Authorization", "b.B_KEY",
		"moved to the keyring", "web     ready", "mcpx serves web now. Take it out of Cursor?")
	if got := readFile(t, h.own()); code != 0 || strings.Contains(got, "hush-") {
		t.Errorf("exit %d, %s", code, got)
	}
	hasAll(t, readFile(t, h.own()), "Bearer ${keyring:web.Authorization}", "${keyring:b.B_KEY}")
	if got := readFile(t, file); strings.Contains(got, `"web"`) || !strings.Contains(got, `"b"`) {
		t.Errorf("got %s", got)
	}
	out, code = say("", "disconnect", "cursor", "--yes")
	hasAll(t, out, "byte for byte")
	if got := readFile(t, file); got != cursor || code != 0 {
		t.Errorf("exit %d, %s", code, got)
	}
	out, _ = say("", "init", "--yes", "--keyring", "--no-check")
	hasAll(t, out, "is in the config already", "has all of them")
	if strings.Contains(out, "moved to the keyring") {
		t.Errorf("got %s", out)
	}

	// What the keyring does not take stays in the config.
	big := strings.Repeat("x", 70_000)
	h.write(t, ".cursor/mcp.json", `{"mcpServers": {"c": {"command": "no-such-program", "env": {"C_KEY": "hush-3333", "BIG_KEY": "`+big+`"}}}}`)
	out, _ = say("", "init", "--yes", "--keyring", "--no-check")
	hasAll(t, out, "moved to the keyring: c.C_KEY;", "left in the config: mcpServers.c.env.BIG_KEY;")
	hasAll(t, readFile(t, h.own()), big, "${keyring:c.C_KEY}")
}

// TestInit_KeyringUnwritten: if init cannot write the config, the keyring is as before. If only the record for --undo cannot be stored,
// the config needs the secrets, and they stay.
func TestInit_KeyringUnwritten(t *testing.T) {
	h := newHome(t)
	h.enter(t)
	const plain = `{"mcpServers": {"b": {"command": "no-such-program", "env": {"B_KEY": "hush-2222"}}}}`
	file := h.write(t, "mine.json", plain)
	records := filepath.Join(filepath.Dir(h.own()), "backups", "connected.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(records), 0o700), os.WriteFile(records, []byte("[]"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ locked, secrets, config string }{
		{file, "there are no secrets", "hush-2222"}, {records, "b.B_KEY", "${keyring:b.B_KEY}"},
	} {
		if err := os.Chmod(test.locked, 0o400); err != nil {
			t.Fatal(err)
		}
		var out lockedBuffer
		said := streams{in: strings.NewReader(""), out: &out, err: &out, getenv: os.LookupEnv}
		code := run(t.Context(), []string{"init", "--config", file, "--yes", "--keyring", "--no-check"}, said)
		hasAll(t, out.String(), test.locked+" is read-only")
		_ = run(t.Context(), []string{"secret", "list"}, said)
		hasAll(t, out.String(), test.secrets)
		if got := readFile(t, file); code != exitFailed || !strings.Contains(got, test.config) {
			t.Errorf("exit %d, %s", code, got)
		}
		if err := os.Chmod(test.locked, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
