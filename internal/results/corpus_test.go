package results

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
	"mcpx/internal/mcptest"
)

// realTexts are texts of real results: the documents in MCPX_CORPUS/results, and the results of the recorded sessions in
// MCPX_SESSIONS.
func realTexts(t *testing.T) (texts []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(os.Getenv("MCPX_CORPUS"), "results", "*"))
	if err != nil || os.Getenv("MCPX_CORPUS") == "" {
		t.Skip("MCPX_CORPUS is not set: no real results")
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(data))
	}
	if os.Getenv("MCPX_SESSIONS") != "" {
		sessions(t, func(_, text string) { texts = append(texts, text) })
	}
	return texts
}

// sessions yields the results of the recorded sessions that have a text.
func sessions(t *testing.T, yield func(server, text string)) {
	t.Helper()
	mcptest.RecordedSessions(t, func(server string, _ int, events []mcptest.RecordedEvent) {
		for _, e := range events {
			if e.Text != "" {
				yield(server, e.Text)
			}
		}
	})
}

// TestGrep_RealResults: matching lines have their numbers, and matching items their offsets if there is a handle with which to
// read the items around them. If a result is shown completely, there is no line that says how to read on.
func TestGrep_RealResults(t *testing.T) {
	texts := realTexts(t)
	store := NewStore(nil)
	p := Pages{Store: &store, Limit: 20_000, Preview: 2000, Texts: compress.Options{TOON: true}}
	numbers := regexp.MustCompile(`^\d+:`)
	offsets := regexp.MustCompile(` match, offset \d[-0-9, …]*[];]`)
	greps, handles := 0, 0
	for _, text := range texts {
		if !utf8.ValidString(text) {
			continue
		}
		s := Shown{Received: []wire.Block{wire.ReadBlock(wire.TextBlock(text))}, Texts: []string{text}}
		for _, pattern := range []string{"id", "(?i)error|name"} {
			found, err := p.Grep(t.Context(), pattern, s)
			if err != nil {
				t.Fatal(err)
			}
			if found[0] == nil {
				continue
			}
			greps++
			got := found[0].Text
			kept := strings.Contains(got, `"handle":"`)
			var lines bool
			for line := range strings.Lines(text) {
				lines = lines || numbers.MatchString(line) // the text itself has lines that begin with a number
			}
			if !lines && strings.Contains(got, " lines match") && !strings.HasPrefix(got, "[0 of") && !numbers.MatchString(got) ||
				strings.Contains(got, " items match") && offsets.MatchString(got) && !kept {
				t.Fatalf("%q of %.100q: %.300q … %q", pattern, text, got, got[max(0, len(got)-300):])
			}
			if kept {
				handles++
			} else if len(got) > len(text)+120+4*strings.Count(got, "\n") {
				// The line that mcpx adds names the path of the list, which has at most 60 bytes. Every other line may begin with
				// a number.
				t.Errorf("%q of %.100q is longer than the text: %q", pattern, text, got)
			}
		}
	}
	t.Logf("%d greps of %d results, %d with handles", greps, len(texts), handles)
}
