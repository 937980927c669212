package learned

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/results"
	"mcpx/internal/tokens"
)

// seen returns the results of each tool in the recorded sessions of each server, in the form that filters get.
func seen(t *testing.T) map[string]map[string][]json.RawMessage {
	t.Helper()
	servers := map[string]map[string][]json.RawMessage{}
	mcptest.RecordedSessions(t, func(server string, _ int, events []mcptest.RecordedEvent) {
		if servers[server] == nil {
			servers[server] = map[string][]json.RawMessage{}
		}
		tools := map[string]string{}
		for _, e := range events {
			if e.Call != "" {
				tools[e.Call] = e.Tool
				continue
			}
			a := results.Answer{Untouched: true, Learn: func(s results.Sample) {
				if value, cut := s.Value(); !cut && value != nil {
					servers[server][tools[e.Result]] = append(servers[server][tools[e.Result]], value)
				}
			}}
			if _, err := a.Of(t.Context(), wire.Encode(map[string]any{"content": []json.RawMessage{wire.TextBlock(e.Text)}})); err != nil {
				t.Fatal(err)
			}
		}
	})
	return servers
}

// TestSessions learns from a part of the results of real tools. At least 99 % of the other results must be of the type that is
// then shown. For a table, run MCPX_SESSIONS=FOLDER go test -run Sessions -v ./internal/learned
func TestSessions(t *testing.T) {
	halves := map[string]func(i, n int) bool{
		"first": func(i, n int) bool { return i < (n+1)/2 },
		"last":  func(i, n int) bool { return i >= n/2 },
		"even":  func(i, _ int) bool { return i%2 == 0 },
		// as a running mcpx does
		"sampled": func(i, n int) bool { return i < (n+1)/2 && sampled(i+1) },
	}
	checked, conform := map[string]int{}, map[string]int{}
	for server, tools := range seen(t) {
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
				t.Logf("%s %s, %s half: %d of %d: %s // %s", server, tool, half, good, of, shown, why)
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
