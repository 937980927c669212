package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestCheck: a type error in a file that is only for one system, or in a test file for that system, is found when that
// system is checked, and only then.
func TestCheck(t *testing.T) {
	mcptest.OneGoroutine(t)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":            "module example\n\ngo 1.26\n",
		"a.go":              "package a\n\nimport \"os\"\n\nvar Args = os.Args\n",
		"a_windows.go":      "package a\n\nimport \"syscall\"\n\nvar kill = syscall.Kill\n",
		"a_darwin_test.go":  "package a_test\n\nimport \"example\"\n\nvar kill = a.Kill\n",
		"b/b.go":            "package b\n\nimport \"example\"\n\nvar Args = a.Args\n",
		"b/b_linux_test.go": "package b\n\nimport \"testing\"\n\nfunc TestArgs(t *testing.T) { t.Log(Args) }\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := newSources()
	for system, want := range map[string]string{"linux": "", "windows": "undefined: syscall.Kill", "darwin": "undefined: a.Kill"} {
		checked, err := s.check(system, dir)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", system, err, want)
		}
		if checked < 2 {
			t.Errorf("%s: %d packages", system, checked)
		}
	}
}
