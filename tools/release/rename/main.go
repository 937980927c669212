// Command rename gives the module another path, so that go install works with that path once the module is published there:
//
//	go run ./tools/release/rename github.com/OWNER/mcpx
//
// It changes the path in go.mod, the imports, and strings of tests that are names of packages. Run it at the root of a clone without
// changes. It runs gofmt on what it has changed.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("rename: ")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("which path? such as github.com/OWNER/mcpx")
	}
	if err := rename(".", flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}

var (
	modulePath = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._-]+)+$`)
	moduleLine = regexp.MustCompile(`(?m)^module (\S+)$`)
)

// rename changes the path of the module in the folder dir to the path in to.
func rename(dir, to string) error {
	if !modulePath.MatchString(to) {
		return fmt.Errorf("%s is not the path of a module that can be published, such as github.com/OWNER/mcpx", to)
	}
	file := filepath.Join(dir, "go.mod")
	mod, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	line := moduleLine.FindSubmatchIndex(mod)
	if line == nil {
		return errors.New("go.mod names no module")
	}
	from := string(mod[line[2]:line[3]])
	var changed []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "venv" || strings.HasPrefix(d.Name(), ".") && path != dir):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		was, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		is, err := renamed(was, from, to)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if bytes.Equal(is, was) {
			return nil
		}
		changed = append(changed, path)
		return os.WriteFile(path, is, 0o644)
	})
	if err != nil {
		return err
	}
	mod = append(append(bytes.Clone(mod[:line[2]]), to...), mod[line[3]:]...)
	if err := os.WriteFile(file, mod, 0o644); err != nil {
		return err
	}
	if len(changed) == 0 {
		return nil
	}
	if out, err := exec.Command("gofmt", append([]string{"-w"}, changed...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("gofmt: %w\n%s", err, out)
	}
	fmt.Printf("%s is %s now, in go.mod and %d files; go install %s/cmd/mcpx@latest works once it is published there\n", from, to, len(changed), to)
	return nil
}

// renamed returns the text of a Go file after its imports and its quoted names of packages were changed to the new path.
func renamed(text []byte, from, to string) ([]byte, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	for i := len(file.Imports) - 1; i >= 0; i-- { // from the end, so that the offsets of earlier imports stay right
		at := file.Imports[i].Path
		path, err := strconv.Unquote(at.Value)
		if err != nil || path != from { // paths of packages below the root are changed like other quoted names
			continue
		}
		begin, end := set.Position(at.Pos()).Offset, set.Position(at.End()).Offset
		// The package at the root is named mcpx, whatever the last element of its path is.
		name := ""
		if file.Imports[i].Name == nil && to[strings.LastIndexByte(to, '/')+1:] != "mcpx" {
			name = "mcpx "
		}
		text = bytes.Join([][]byte{text[:begin], []byte(name + strconv.Quote(to)), text[end:]}, nil)
	}
	packages := regexp.MustCompile(`"` + regexp.QuoteMeta(from) + `/(internal|cmd|tools|\.\.\.)([/"])`)
	return packages.ReplaceAll(text, []byte(`"`+to+`/${1}${2}`)), nil
}
