package mcptest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestOneGoroutine_RunsWithoutRace: .ci/run also runs each test that calls OneGoroutine without the race detector. It finds the
// packages in its list without_race, and the tests by their functions.
func TestOneGoroutine_RunsWithoutRace(t *testing.T) {
	root := filepath.Join("..", "..")
	script, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?s)\nreadonly without_race='(.*?)'\n`).FindSubmatch(script)
	if list == nil {
		t.Fatal(".ci/run has no list without_race")
	}
	again := strings.Fields(string(list[1]))
	skips := 0
	for _, top := range []string{"cmd", "internal", "tools"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			skip := []byte("mcptest.OneGoroutine" + "(t)")
			if err != nil || !bytes.Contains(data, skip) {
				return err
			}
			for _, function := range regexp.MustCompile(`(?ms)^func (.*?)^}`).FindAllSubmatch(data, -1) {
				if bytes.Contains(function[0], skip) && !bytes.HasPrefix(function[1], []byte("Test")) {
					name, _, _ := bytes.Cut(function[1], []byte("("))
					t.Errorf("%s: %s calls OneGoroutine and is no test, so .ci/run does not find the tests that call it", path, name)
				}
			}
			skips++
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if name := "./" + filepath.ToSlash(dir); !slices.Contains(again, name) {
				t.Errorf("%s skips tests under the race detector, and is not in without_race of .ci/run", name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if skips < 10 {
		t.Errorf("only %d files have such tests: this test proves nothing", skips)
	}
}
