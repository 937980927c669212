package schemats

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden compares what a model gets for a complete tool with golden files. Each file in testdata/golden has tool.json and
// the texts made from it.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]string{}
			for _, f := range ar.Files {
				parts[f.Name] = string(f.Data)
			}
			var in struct {
				Name, Description         string
				InputSchema, OutputSchema json.RawMessage
				Notes                     []string
			}
			if err := json.Unmarshal([]byte(parts["tool.json"]), &in); err != nil {
				t.Fatalf("reading tool.json: %v", err)
			}
			tool := Tool{in.Name, in.Description, in.InputSchema, in.OutputSchema, in.Notes}
			got := map[string]string{
				"complete.txt":   complete(tool, full, length) + "\n",
				"listing.txt":    Listing(tool) + "\n",
				"declaration.ts": Declaration(tool.Input, tool.Output, full) + "\n",
			}
			if *update {
				out := &txtar.Archive{Comment: ar.Comment, Files: []txtar.File{{Name: "tool.json", Data: []byte(parts["tool.json"])}}}
				for _, name := range []string{"complete.txt", "listing.txt", "declaration.ts"} {
					out.Files = append(out.Files, txtar.File{Name: name, Data: []byte(got[name])})
				}
				if err := os.WriteFile(file, txtar.Format(out), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for name, text := range got {
				if diff := cmp.Diff(parts[name], text); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}
