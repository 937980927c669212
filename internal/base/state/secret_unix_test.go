//go:build unix

package state

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestSecretFile_Odd: for a path that is no regular file, SecretFile returns an error, and does not hang. If other users can read
// the file, SecretFile logs a warning. It follows a link to a file of the user.
func TestSecretFile_Odd(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key := []byte(strings.Repeat("k", minSecret))
	check(syscall.Mkfifo(at("pipe"), 0o600))
	check(os.Mkdir(at("folder"), 0o700))
	check(os.Symlink(at("pipe"), at("link to a pipe")))
	check(os.Symlink(at("nothing"), at("link to nothing")))
	check(os.WriteFile(at("private"), key, 0o600))
	check(os.Symlink(at("private"), at("link")))
	check(os.WriteFile(at("public"), key, 0o600))
	check(os.Chmod(at("public"), 0o644))
	check(os.Symlink(at("public"), at("link to a public file")))
	check(os.WriteFile(at("large"), bytes.Repeat(key, maxSecret), 0o600))
	for name, want := range map[string]struct{ failure, warning string }{
		"pipe":                  {"not a regular file (p", ""},
		"folder":                {"not a regular file (d", ""},
		"link to a pipe":        {"not a regular file (p", ""},
		"link to nothing":       {"no such file", ""},
		"large":                 {"too long", ""},
		"private":               {},
		"link":                  {},
		"public":                {"", "chmod 600"},
		"link to a public file": {"", "chmod 600"},
	} {
		var log bytes.Buffer
		secret, err := SecretFile(at(name), slog.New(slog.NewTextHandler(&log, nil)))
		switch {
		case want.failure != "" && (err == nil || !strings.Contains(err.Error(), want.failure) || !strings.Contains(err.Error(), at(name))):
			t.Errorf("%s: %v", name, err)
		case want.failure == "" && (err != nil || !bytes.Equal(secret.secret, key)):
			t.Errorf("%s: %v", name, err)
		}
		if said := log.String(); (want.warning == "") != (said == "") || !strings.Contains(said, want.warning) {
			t.Errorf("%s: the log says %q", name, said)
		}
	}
}
