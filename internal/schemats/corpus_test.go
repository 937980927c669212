package schemats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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

func TestCorpusTokens(t *testing.T) {
	tools := loadTools(t, corpusDir(t))
	count := o200k(t)
	type sums struct{ raw, complete, listing, rawIn, completeIn, tools int }
	var all sums
	per := map[string]*sums{}
	for _, x := range tools {
		s := per[x.file]
		if s == nil {
			s = &sums{}
			per[x.file] = s
		}
		raw := count(rawJSON(t, x.Tool))
		complete := count(Complete(x.Tool, full, count))
		if complete > raw {
			t.Errorf("%s %s: complete %d tokens, minified JSON %d", x.file, x.Name, complete, raw)
		}
		in := x.Tool
		in.Output = nil
		rawIn, completeIn := count(rawJSON(t, in)), count(Complete(in, full, count))
		if completeIn > rawIn {
			t.Errorf("%s %s: complete input %d tokens, minified JSON %d", x.file, x.Name, completeIn, rawIn)
		}
		for _, s := range []*sums{s, &all} {
			s.raw += raw
			s.complete += complete
			s.rawIn += rawIn
			s.completeIn += completeIn
			s.listing += count(Listing(x.Tool))
			s.tools++
		}
	}
	ratio := func(a, b int) float64 { return float64(a) / float64(b) }
	for f, s := range per {
		t.Logf("%-52s %3d tools %6d raw, complete %.3f (input only %.3f), listing %.3f", f, s.tools, s.rawIn,
			ratio(s.complete, s.raw), ratio(s.completeIn, s.rawIn), ratio(s.listing, s.rawIn))
	}
	got := fmt.Sprintf("%d tools: complete %.4f (input only %.4f), listing %.4f", all.tools, ratio(all.complete, all.raw), ratio(all.completeIn, all.rawIn), ratio(all.listing, all.rawIn))
	t.Log(got)
	if ratio(all.completeIn, all.rawIn) > 0.67 || ratio(all.listing, all.rawIn) > 0.20 {
		t.Errorf("above the targets of 0.67 and 0.20: %s", got)
	}
}
