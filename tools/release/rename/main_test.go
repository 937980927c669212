package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRename renames a copy of this module and reads all its packages with go list.
func TestRename(t *testing.T) {
	dir, root := t.TempDir(), filepath.Join("..", "..", "..")
	list := exec.Command("git", "ls-files", "-z", "*.go", "go.mod", "go.sum")
	list.Dir = root
	files, err := list.Output()
	if err != nil {
		t.Skipf("the files of the module are not known: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(files), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const to = "example.com/some/gateway"
	for _, path := range []string{"mcpx", "example.com", "https://example.com/x", "example.com/a b"} {
		if rename(dir, path) == nil {
			t.Errorf("%s is taken for the path of a module", path)
		}
	}
	if err := rename(dir, to); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", "list", "-e", "-test", "-f", `{{with .Error}}{{.}}{{end}}{{range .DepsErrors}}{{.}}{{end}}{{range .Imports}} {{.}}{{end}}`, "./...")
	command.Dir, command.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOPROXY=off")
	out, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(out), " "+to+"/internal/app ") {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		// What go list says of embedded files is of no interest: they are not in the copy.
		if strings.Contains(line, " mcpx/") || strings.Contains(line, "is not in std") {
			t.Error(line)
		}
	}
	if example, err := os.ReadFile(filepath.Join(dir, "example_test.go")); err != nil || !strings.Contains(string(example), `mcpx "`+to+`"`) {
		t.Errorf("%v: the root is not imported under its name", err)
	}
}
