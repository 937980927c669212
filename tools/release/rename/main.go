// Command rename gives the module another path, so that go install works with that path once the module is published there:
//
//	go run ./tools/release/rename github.com/OWNER/mcpx
//
// It changes the path in go.mod, in imports, and in other strings in Go files that begin with the path of a package. Run it at
// the root of a clone without changes. It runs gofmt on the files that it has changed.
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

// rename changes the path of the module in the folder dir to newPath.
func rename(dir, newPath string) error {
	if !modulePath.MatchString(newPath) {
		return fmt.Errorf("%s is not the path of a module that can be published, such as github.com/OWNER/mcpx", newPath)
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
		is, err := renamed(was, from, newPath)
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
	mod = append(append(bytes.Clone(mod[:line[2]]), newPath...), mod[line[3]:]...)
	if err := os.WriteFile(file, mod, 0o644); err != nil {
		return err
	}
	if len(changed) == 0 {
		return nil
	}
	if out, err := exec.Command("gofmt", append([]string{"-w"}, changed...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("gofmt: %w\n%s", err, out)
	}
	fmt.Printf("%s is %s now, in go.mod and %d files; go install %s/cmd/mcpx@latest works once it is published there\n", from, newPath, len(changed), newPath)
	return nil
}

// renamed returns the text of a Go file with newPath in place of oldPath, in the imports and in quoted names of packages.
func renamed(text []byte, oldPath, newPath string) ([]byte, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	for i := len(file.Imports) - 1; i >= 0; i-- { // from the end, so that the offsets of earlier imports stay right
		at := file.Imports[i].Path
		path, err := strconv.Unquote(at.Value)
		if err != nil || path != oldPath { // paths of packages below the root are changed like other quoted names
			continue
		}
		begin, end := set.Position(at.Pos()).Offset, set.Position(at.End()).Offset
		// The package at the root is named mcpx, whatever the last element of its path is.
		name := ""
		if file.Imports[i].Name == nil && newPath[strings.LastIndexByte(newPath, '/')+1:] != "mcpx" {
			name = "mcpx "
		}
		text = bytes.Join([][]byte{text[:begin], []byte(name + strconv.Quote(newPath)), text[end:]}, nil)
	}
	packages := regexp.MustCompile(`"` + regexp.QuoteMeta(oldPath) + `/(internal|cmd|tools|\.\.\.)([/"])`)
	return packages.ReplaceAll(text, []byte(`"`+newPath+`/${1}${2}`)), nil
}
