package caller

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestMade: every Client is made in new.go. If one were made elsewhere, it would lack the next field that is added
// to [Place].
func TestMade(t *testing.T) {
	files, makers := 0, 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") && strings.Trim(name, ".") != ""):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		files++
		made := clientsIn(t, path, nil)
		if filepath.ToSlash(path) == "../../internal/caller/new.go" {
			makers += len(made)
		} else if len(made) > 0 {
			t.Errorf("a client is made by hand: %s; call New, or a method of Client", strings.Join(made, ", "))
		}
		return nil
	})
	if err != nil || files < 400 || makers == 0 {
		t.Errorf("%d files, in new.go %d clients: %v", files, makers, err)
	}
}

// TestMade_Found: clientsIn finds all ways to make a client, and nothing else.
func TestMade_Found(t *testing.T) {
	const source = `package p
import ("context"; who "mcpx/internal/caller"; "mcpx/internal/view")
var a = who.Client{ID: "x"}
var b, c = &who.Client{}, new(who.Client)
var d who.Client
var e = []who.Client{{ID: "x"}}
var f = map[string]*who.Client{"x": {ID: "x"}}
type g = who.Client
type h struct{ who.Client }
var i *who.Client
var j = view.Client{}
func k(_ context.Context, one *who.Client, two who.Client) (three who.Client) { four := *one; return four }
var l = []*who.Client{i}
`
	if got := clientsIn(t, "p.go", source); !slices.Equal(got, []string{"p.go:3", "p.go:4", "p.go:4", "p.go:5", "p.go:6", "p.go:7", "p.go:8"}) {
		t.Errorf("found %q", got)
	}
}

// clientsIn returns the places in a file where a [Client] is made. source is the text of the file; if it is nil,
// the file is read.
func clientsIn(t *testing.T, path string, source any) (places []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	imported := "" // the name under which the file imports this package
	for _, one := range file.Imports {
		if of, _ := strconv.Unquote(one.Path.Value); of == "mcpx/internal/caller" {
			if imported = "caller"; one.Name != nil {
				imported = one.Name.Name
			}
		}
	}
	isClient := func(e ast.Expr) bool {
		if pointer, ok := e.(*ast.StarExpr); ok {
			e = pointer.X
		}
		if name, ok := e.(*ast.Ident); ok {
			return name.Name == "Client" && (file.Name.Name == "caller" || imported == ".")
		}
		of, ok := e.(*ast.SelectorExpr)
		if !ok || of.Sel.Name != "Client" {
			return false
		}
		name, ok := of.X.(*ast.Ident)
		return ok && imported != "" && name.Name == imported
	}
	found := func(n ast.Node) {
		at := set.Position(n.Pos())
		places = append(places, at.Filename+":"+strconv.Itoa(at.Line))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			kind := n.Type
			switch of := n.Type.(type) {
			case *ast.ArrayType:
				kind = of.Elt
			case *ast.MapType:
				kind = of.Value
			}
			// an array or map makes a Client only if an element is a literal
			made := kind == n.Type || slices.ContainsFunc(n.Elts, func(e ast.Expr) bool {
				if pair, ok := e.(*ast.KeyValueExpr); ok {
					e = pair.Value
				}
				literal, ok := e.(*ast.CompositeLit)
				return ok && literal.Type == nil
			})
			if made && isClient(kind) {
				found(n)
			}
		case *ast.CallExpr:
			if name, ok := n.Fun.(*ast.Ident); ok && name.Name == "new" && len(n.Args) == 1 && isClient(n.Args[0]) {
				found(n)
			}
		case *ast.ValueSpec:
			if _, pointer := n.Type.(*ast.StarExpr); n.Type != nil && !pointer && isClient(n.Type) {
				found(n)
			}
		case *ast.TypeSpec:
			if isClient(n.Type) {
				found(n)
			}
		}
		return true
	})
	return places
}
