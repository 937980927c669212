// Command typecheck checks the types of mcpx and of its tests on other systems than this one.
//
//	go run ./tools/typecheck darwin windows
//
// It reads the sources of everything that mcpx imports and compiles none of them: a system takes 4 s of a processor,
// where go vet needs 150 s to compile the whole for a system that the build cache does not know.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("typecheck: ")
	failed := false
	for _, system := range os.Args[1:] {
		checked, err := check(system, ".")
		if err != nil {
			log.Printf("%s: %v", system, err)
			failed = true
		}
		fmt.Printf("%s: %d packages\n", system, checked)
	}
	if failed || len(os.Args) == 1 {
		os.Exit(1)
	}
}

// pkg is what go list says of a package, or of one with its tests.
type pkg struct {
	ImportPath, Dir, ForTest string
	GoFiles                  []string
	ImportMap                map[string]string // from what a file names to the package that is meant
	Module                   *struct{ Main bool }
}

// check type-checks the module in dir with its tests, and all that they import. checked counts the packages of the
// module, those with tests twice. The error joins everything that is wrong.
func check(system, dir string) (checked int, err error) {
	list := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,ForTest,GoFiles,ImportMap,Module", "./...")
	list.Dir, list.Stderr = dir, os.Stderr
	list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0", "GOFLAGS=")
	out, err := list.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := list.Start(); err != nil {
		return 0, err
	}
	c := checker{files: token.NewFileSet(), done: map[string]*types.Package{"unsafe": types.Unsafe}}
	for in := json.NewDecoder(out); ; { // what a package imports comes before it
		var p pkg
		if err := in.Decode(&p); err != nil {
			if !errors.Is(err, io.EOF) {
				c.errs = append(c.errs, err)
			}
			break
		}
		c.add(p)
	}
	if err := list.Wait(); err != nil {
		c.errs = append(c.errs, fmt.Errorf("go list: %w", err))
	}
	return c.own, errors.Join(c.errs...)
}

// checker has the packages that are checked already.
type checker struct {
	files *token.FileSet
	done  map[string]*types.Package
	own   int // of the main module
	errs  []error
}

// add checks one package. The bodies of functions of other modules are not read.
func (c *checker) add(p pkg) {
	if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // the latter is generated
		return
	}
	own := p.Module != nil && p.Module.Main
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			c.errs = append(c.errs, err)
			continue
		}
		files = append(files, file)
	}
	config := types.Config{
		Importer: imports{c, p.ImportMap}, IgnoreFuncBodies: !own, Sizes: types.SizesFor("gc", runtime.GOARCH),
		Error: func(err error) { c.errs = append(c.errs, err) },
	}
	c.done[p.ImportPath], _ = config.Check(p.ImportPath, c.files, files, nil)
	if own {
		c.own++
	}
}

// imports finds what a package imports.
type imports struct {
	*checker
	named map[string]string
}

// Import implements types.Importer.
func (i imports) Import(path string) (*types.Package, error) {
	if meant, ok := i.named[path]; ok {
		path = meant
	}
	if p, ok := i.done[path]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("go list does not list %s", path)
}
