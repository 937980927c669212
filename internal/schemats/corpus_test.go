package schemats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tiktoken-go/tokenizer"
)

// corpusTool is a tool of the corpus, with its file.
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

func corpusDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("MCPX_CORPUS")
	if dir == "" {
		t.Skip("MCPX_CORPUS is not set: the folder of the corpus, for the token figures")
	}
	return filepath.Join(dir, "tools")
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

var full = Options{Descriptions: true, Constraints: true}

// rawJSON is {name, description, inputSchema[, outputSchema]} as a client gets it.
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

// tokenSums are o200k tokens over many tools.
type tokenSums struct{ tools, raw, complete, rawInput, completeInput, listing int }

func (s *tokenSums) String() string {
	ratio := func(a, b int) float64 { return float64(a) / float64(b) }
	return fmt.Sprintf("%d tools, %d tokens: complete %.4f (input only %.4f), listing %.4f", s.tools, s.rawInput,
		ratio(s.complete, s.raw), ratio(s.completeInput, s.rawInput), ratio(s.listing, s.rawInput))
}

// measure adds one tool, and fails where a text costs more than what it stands for.
func (s *tokenSums) measure(t *testing.T, x corpusTool, count func(string) int) {
	raw := count(rawJSON(t, x.Tool))
	in := x.Tool
	in.Output = nil
	rawInput := count(rawJSON(t, in))
	complete, completeInput := count(Complete(x.Tool, full, count)), count(Complete(in, full, count))
	for _, c := range []struct {
		what      string
		got, most int
	}{
		{"complete", complete, raw},
		{"complete without output", completeInput, rawInput},
		{"complete, estimated by bytes", count(Complete(x.Tool, full, nil)), raw},
		{"listing", count(Listing(x.Tool)), raw},
	} {
		if c.got > c.most {
			t.Errorf("%s %s: %s has %d tokens, the minified JSON %d", x.file, x.Name, c.what, c.got, c.most)
		}
	}
	s.tools++
	s.raw += raw
	s.complete += complete
	s.rawInput += rawInput
	s.completeInput += completeInput
	s.listing += count(Listing(x.Tool))
}

func TestTokens_NeverMoreThanJSON(t *testing.T) {
	count := o200k(t)
	var sums tokenSums
	for _, x := range loadTools(t, "testdata/tools") {
		sums.measure(t, x, count)
	}
	t.Log(&sums)
}

// TestTokens_Corpus checks the targets on the whole corpus.
func TestTokens_Corpus(t *testing.T) {
	tools := loadTools(t, corpusDir(t))
	count := o200k(t)
	var all tokenSums
	files := map[string]*tokenSums{}
	for _, x := range tools {
		if files[x.file] == nil {
			files[x.file] = &tokenSums{}
		}
		files[x.file].measure(t, x, count)
		all.measure(t, x, count)
	}
	for _, f := range slices.Sorted(maps.Keys(files)) {
		t.Logf("%-54s %s", f, files[f])
	}
	t.Log(&all)
	if all.completeInput*100 > all.rawInput*67 || all.complete*100 > all.raw*67 || all.listing*100 > all.rawInput*20 {
		t.Errorf("above the targets of 0.67 and 0.20: %s", &all)
	}
}
