package pattern

import (
	"bytes"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNew_Everywhere compiles the expressions in all Go files of mcpx. Without this test, an invalid expression would
// be noticed only when it is first used.
func TestNew_Everywhere(t *testing.T) {
	n := 0
	err := filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == ".git"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(source, []byte("pattern.New")) { // parsing takes long
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			of, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || of.Sel.Name != "New" {
				return true
			}
			if name, ok := of.X.(*ast.Ident); !ok || name.Name != "pattern" {
				return true
			}
			n++
			if text, ok := literal(call.Args[0]); !ok {
				t.Errorf("%s: the expression is no literal", path)
			} else if _, err := regexp.Compile(text); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			return true
		})
		return nil
	})
	if err != nil || n < 30 {
		t.Error(n, "expressions found", err)
	}
}

// literal returns the value of a string literal, or of several string literals joined by +.
func literal(of ast.Expr) (string, bool) {
	switch of := of.(type) {
	case *ast.BasicLit:
		value := constant.MakeFromLiteral(of.Value, of.Kind, 0)
		return constant.StringVal(value), value.Kind() == constant.String
	case *ast.BinaryExpr:
		left, ok := literal(of.X)
		right, also := literal(of.Y)
		return left + right, ok && also && of.Op == token.ADD
	}
	return "", false
}
