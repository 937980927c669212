package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestSecret: a secret is read from stdin, reaches its server, and appears in no output. It is stored in a
// file, because the tests have no keyring.
func TestSecret(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	h.extra = append(h.extra, "MCPX_KEYRING=off")
	run := func(want string, code int, stdin string, args ...string) {
		t.Helper()
		out, stderr, got := h.run(t, stdin, args...)
		if got != code || !strings.Contains(out+stderr, want) || strings.Contains(out+stderr, "hush-") {
			t.Errorf("%q: exit %d\n%s\n%s", args, got, out, stderr)
		}
	}
	run("readable by you only: MCPX_KEYRING=off", 0, "hush-1111\n", "secret", "set", "one")
	run("unexpected argument", exitUsage, "", "secret", "set", "one", "value")
	run("the value is empty", exitFailed, "\n", "secret", "set", "two")
	run("one\n", 0, "", "secret", "list")

	printer := fake(t, mcptest.Spec{StderrLines: []string{"hush-1111 and hush-file"}, ExitAtOnce: true, ExitCode: 1})
	printer["args"] = append(printer["args"].([]string), "${keyring:one}", "--x=${file:token}")
	path := h.config(t, map[string]server{
		"prints":  printer,
		"none":    {"command": "x", "env": map[string]string{"E": "${keyring:none}"}},
		"program": {"command": "x", "env": map[string]string{"E": "${command:no-such-program hush-argument}"}},
	}, nil)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "token"), []byte("hush-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("[secret] and [secret]", exitFailed, "", "--config", path, "--log-level", "debug", "check")
	run("there is no secret none; set it with mcpx secret set none", exitFailed, "", "--config", path, "check")
	run("there is no command no-such-program on the PATH", exitFailed, "", "--config", path, "check")
	run("deleted one", 0, "", "secret", "delete", "one")
	run("there is no secret one", exitFailed, "", "secret", "delete", "one")
	run("there is no secret one; set it", exitFailed, "", "--config", path, "check")
}
