package compress

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/tokens"
)

// sample is a document of testdata/results or of the corpus (see documents); its name is "class--name.json".
type sample struct {
	name string
	text string
}

func readSamples(t testing.TB, dir string) []sample {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var docs []sample
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, sample{filepath.Base(f), string(text)})
	}
	if len(docs) == 0 {
		t.Fatalf("no documents in %s", dir)
	}
	return docs
}

// committed are the samples in testdata/results.
func committed(t testing.TB) []sample {
	t.Helper()
	dir := filepath.Join("testdata", "results")
	docs := readSamples(t, dir)
	made, err := os.ReadFile(filepath.Join(dir, "made.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(made) {
		var doc struct {
			Name, Text string
			Base64     []byte
		}
		if err := json.Unmarshal(line, &doc); err != nil {
			t.Fatalf("made.jsonl: %v", err)
		}
		docs = append(docs, sample{doc.Name, doc.Text + string(doc.Base64)})
	}
	return docs
}

// documents are the committed samples, and the corpus where MCPX_CORPUS names its folder.
func documents(t testing.TB) []sample {
	t.Helper()
	docs := committed(t)
	if dir := os.Getenv("MCPX_CORPUS"); dir != "" {
		docs = append(docs, readSamples(t, filepath.Join(dir, "results"))...)
	}
	return docs
}

// forms returns the document written in different ways, as servers may send it.
func (s sample) forms(t testing.TB) map[string]string {
	t.Helper()
	forms := map[string]string{"received": s.text}
	if !json.Valid([]byte(s.text)) {
		return forms
	}
	var compact, pretty bytes.Buffer
	if json.Compact(&compact, []byte(s.text)) != nil || json.Indent(&pretty, []byte(s.text), "", "  ") != nil {
		t.Fatalf("%s: valid JSON cannot be formatted", s.name)
	}
	forms["compact"] = compact.String()
	forms["pretty"] = pretty.String()
	forms["spaced"] = spaced(compact.String())
	return forms
}

// spaced writes compact JSON as Python's json.dumps does: ", " and ": ".
func spaced(compact string) string {
	var out strings.Builder
	quoted := false
	for i := range len(compact) {
		c := compact[i]
		out.WriteByte(c)
		switch {
		case c == '"' && !escaped(compact, i):
			quoted = !quoted
		case !quoted && (c == ',' || c == ':'):
			out.WriteByte(' ')
		}
	}
	return out.String()
}

// escaped reports whether an odd number of backslashes precedes the byte at i.
func escaped(s string, i int) bool {
	n := 0
	for i > n && s[i-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}

// counter caches the number of tokens of each text, because the tokenizer is slow.
type counter map[string]int

func (c counter) count(s string) int {
	n, ok := c[s]
	if !ok {
		n = tokens.Count(s)
		c[s] = n
	}
	return n
}
