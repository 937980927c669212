package learned

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/results"
	"mcpx/internal/tokens"
)

// seenIn returns the results of each tool in a file of recorded sessions, in the form that filters get.
func seenIn(t *testing.T, path string) map[string][]json.RawMessage {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 64<<20)
	all := map[string][]json.RawMessage{}
	for lines.Scan() {
		var session struct {
			Events []struct{ Call, Tool, Result, Text string }
		}
		if err := json.Unmarshal(lines.Bytes(), &session); err != nil {
			t.Fatal(err)
		}
		tools := map[string]string{}
		for _, e := range session.Events {
			if e.Call != "" {
				tools[e.Call] = e.Tool
				continue
			}
			a := results.Answer{Untouched: true, Learn: func(s results.Sample) {
				if value, cut := s.Value(); !cut && value != nil {
					all[tools[e.Result]] = append(all[tools[e.Result]], value)
				}
			}}
			if _, err := a.Of(t.Context(), wire.Encode(map[string]any{"content": []json.RawMessage{wire.TextBlock(e.Text)}})); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := lines.Err(); err != nil || len(all) == 0 {
		t.Fatalf("%s: %d tools, %v", path, len(all), err)
	}
	return all
}

// TestSessions learns from a part of the results of real tools. At least 99 % of the other results must be of the type that is
// then shown. For a table, run MCPX_SESSIONS=FOLDER go test -run Sessions -v ./internal/learned
func TestSessions(t *testing.T) {
	folder := os.Getenv("MCPX_SESSIONS")
	if folder == "" {
		t.Skip("MCPX_SESSIONS names no folder of sessions")
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.jsonl.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no sessions in %s: %v", folder, err)
	}
	halves := map[string]func(i, n int) bool{
		"first": func(i, n int) bool { return i < (n+1)/2 },
		"last":  func(i, n int) bool { return i >= n/2 },
		"even":  func(i, _ int) bool { return i%2 == 0 },
		// like a running mcpx
		"sampled": func(i, n int) bool { return i < (n+1)/2 && sampled(i+1) },
	}
	checked, conform := map[string]int{}, map[string]int{}
	for _, path := range paths {
		tools := seenIn(t, path)
		for _, tool := range slices.Sorted(maps.Keys(tools)) {
			values := tools[tool]
			for half, learns := range halves {
				s := &Shape{}
				for i, value := range values {
					if learns(i, len(values)) {
						s.Add(value, false)
					}
				}
				shown := s.TypeScript(prefix, 60)
				if n := tokens.Count(prefix + shown); n > 60 {
					t.Errorf("%s: %d tokens: %s", tool, n, shown)
				}
				of, good, why := 0, 0, ""
				for i, value := range values {
					if shown == "" || learns(i, len(values)) {
						continue
					}
					of++
					if not := readType(t, shown).accepts(decoded(t, value)); not == "" {
						good++
					} else {
						why = not
					}
				}
				checked[half], conform[half] = checked[half]+of, conform[half]+good
				t.Logf("%s %s, %s half: %d of %d: %s // %s", filepath.Base(path), tool, half, good, of, shown, why)
			}
		}
	}
	for half, n := range checked {
		t.Logf("learned from the %s half: %d of %d others conform (%.2f %%)", half, conform[half], n, 100*float64(conform[half])/float64(n))
		if conform[half]*100 < n*99 {
			t.Errorf("%s: less than 99 %%", half)
		}
	}
}

const prefix = "\n// seen: "
