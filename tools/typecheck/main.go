// Command typecheck checks that mcpx and its tests have no type errors on other operating systems.
//
//	go run ./tools/typecheck darwin windows
//
// It reads the sources of everything that mcpx imports, but does not compile them. So it needs 4 s of processor time for
// each system. go vet needs 150 s to compile everything for a system that the build cache has no packages for.
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
	"runtime/debug"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("typecheck: ")
	debug.SetGCPercent(400) // collecting garbage took a third of the time
	failed := false
	s := newSources()
	for _, system := range os.Args[1:] {
		checked, err := s.check(system, ".")
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

// pkg is the output of go list for a package, or for a package together with its tests.
type pkg struct {
	ImportPath, Dir, ForTest string
	GoFiles                  []string
	ImportMap                map[string]string // from the import path in a file to the path of the package that go list found
	Module                   *struct{ Main bool }
}

// sources has the files that were read, by their paths. They are kept for the checks of further systems, because most files are the
// same on all systems. No check changes a file.
type sources struct {
	files  *token.FileSet
	parsed map[string]*ast.File
}

func newSources() sources { return sources{token.NewFileSet(), make(map[string]*ast.File)} }

// parse reads a file, unless it was read before.
func (s sources) parse(path string) (*ast.File, error) {
	if file := s.parsed[path]; file != nil {
		return file, nil
	}
	file, err := parser.ParseFile(s.files, path, nil, parser.SkipObjectResolution)
	if err == nil {
		s.parsed[path] = file
	}
	return file, err
}

// check type-checks the module in dir with its tests, and everything that they import. checked is the number of packages of the
// module; go list lists a package with tests more than once, and each time is counted. The error joins all errors.
func (s sources) check(system, dir string) (checked int, err error) {
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
	c := checker{sources: s, done: map[string]*types.Package{"unsafe": types.Unsafe}}
	for in := json.NewDecoder(out); ; { // go list prints a package after all packages that it imports
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

// checker has the packages that it has already checked.
type checker struct {
	sources
	done map[string]*types.Package
	own  int // the number of packages of the main module
	errs []error
}

// add type-checks one package. In packages of other modules it does not check function bodies.
func (c *checker) add(p pkg) {
	if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // go list generates ".test" packages
		return
	}
	own := p.Module != nil && p.Module.Main
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := c.parse(filepath.Join(p.Dir, name))
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

// imports is the types.Importer for one package.
type imports struct {
	*checker
	named map[string]string
}

// Import returns a package that was already type-checked. path is the import path as it is written in the file that imports it.
func (i imports) Import(path string) (*types.Package, error) {
	if meant, ok := i.named[path]; ok {
		path = meant
	}
	if p, ok := i.done[path]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("go list does not list %s", path)
}
