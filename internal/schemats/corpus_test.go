package schemats

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"mcpx/internal/mcptest"
)

// corpusTool is a tool from a file of the corpus.
type corpusTool struct {
	file string
	Tool
}

func loadTools(t testing.TB, dir string) []corpusTool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tool lists in %s (%v)", dir, err)
	}
	var out []corpusTool
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []struct {
				Name, Description         string
				InputSchema, OutputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		for _, x := range list.Tools {
			out = append(out, corpusTool{filepath.Base(f), Tool{Name: x.Name, Description: x.Description, Input: x.InputSchema, Output: x.OutputSchema}})
		}
	}
	return out
}

func o200k(t testing.TB) func(string) int {
	t.Helper()
	enc, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	return func(s string) int {
		n, err := enc.Count(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

var full Options

// rawJSON returns {name, description, inputSchema[, outputSchema]} as a client gets it without mcpx.
func rawJSON(t testing.TB, x Tool) string {
	t.Helper()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Name         string          `json:"name"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	}{x.Name, x.Description, x.Input, x.Output})
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(buf.Bytes()))
}

// TestTokens_NeverMoreThanJSON: the text of a tool in testdata never has more tokens than its JSON. How many fewer tokens all
// texts have is measured by the tests of the package describe.
func TestTokens_NeverMoreThanJSON(t *testing.T) {
	mcptest.OneGoroutine(t)
	count := o200k(t)
	for _, dir := range []string{"testdata/tools", "testdata/openapi"} {
		for _, x := range loadTools(t, dir) {
			raw := count(rawJSON(t, x.Tool))
			in := x.Tool
			in.Output = nil
			for _, c := range []struct {
				what      string
				got, most int
			}{
				{"complete", count(complete(x.Tool, full, count)), raw},
				{"complete without output", count(complete(in, full, count)), count(rawJSON(t, in))},
				{"complete, estimated by bytes", count(complete(x.Tool, full, length)), raw},
				{"listing", count(Listing(x.Tool)), raw},
			} {
				if c.got > c.most {
					t.Errorf("%s %s: %s has %d tokens, the minified JSON %d", x.file, x.Name, c.what, c.got, c.most)
				}
			}
		}
	}
}
