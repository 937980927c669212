package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// failures is the number of failures of other gateways that docs/faults.md discusses.
const failures = 89

// TestFaults_TestsExist: docs/faults.md has a row for each failure, in order, and every test that it names
// exists.
func TestFaults_TestsExist(t *testing.T) {
	root := filepath.Join("..", "..")
	data, err := os.ReadFile(filepath.Join(root, "docs", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z/]+) ((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	known := make(map[string]map[string]bool)
	last := 0
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(line, "|")
		if len(cells) < 2 {
			continue
		}
		number, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue
		}
		if number != last+1 || len(cells) != 7 {
			t.Errorf("row %d comes after %d and has %d cells", number, last, len(cells)-2)
		}
		last = number
		tests := named.FindAllStringSubmatch(cells[4], -1)
		if len(tests) == 0 && !strings.Contains(cells[4], "none: ") {
			t.Errorf("row %d names no test", number)
		}
		// Each text in backquotes must be the name of a test; otherwise the name is mistyped.
		if quoted := strings.Count(cells[4], "`"); quoted != 2*len(tests) {
			t.Errorf("row %d: %d backquotes around %d tests: %s", number, quoted, len(tests), cells[4])
		}
		for _, test := range tests {
			if known[test[1]] == nil {
				known[test[1]] = testsOf(t, filepath.Join(root, filepath.FromSlash(test[1])))
			}
			if !known[test[1]][test[2]] {
				t.Errorf("row %d: %s has no %s", number, test[1], test[2])
			}
		}
	}
	if last != failures {
		t.Errorf("the last row is %d, want %d", last, failures)
	}
}

// testsOf returns the names of the test functions of a package, including files for other operating systems.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("%s has no tests (%v)", dir, err)
	}
	names := make(map[string]bool)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv == nil {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}
